import { sleep } from "../../kernel/clock.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { collectionPath, type ObjectAt } from "./paths.ts";
import { listObjects, selectors, toObject } from "./read-objects.ts";
import type { Server } from "./server.ts";

/** A server that ends every watch at once must not be asked in a tight loop. */
const pauseMs = 500;

/**
 * The states of one object from now on, the present one first; undefined while there is none. It
 * goes on, over watches that end, until the loop is left or the signal is aborted.
 */
export async function* followObject(
  server: Server,
  at: ObjectAt,
  signal: AbortSignal,
): AsyncGenerator<KubeObject | undefined, void, undefined> {
  const fieldSelector = `metadata.name=${at.name}`;
  const selection = { kind: at.kind, namespace: at.namespace, fieldSelector };
  for (;;) {
    signal.throwIfAborted();
    const { items, resourceVersion } = await listObjects(server, selection);
    yield items[0];
    const lines = server.follow({
      path: collectionPath(at.kind, at.namespace),
      query: { ...selectors(selection), watch: "true", resourceVersion },
      signal,
    });
    for await (const line of lines) {
      const change = readChange(line);
      if (change === undefined) break;
      yield change.type === "DELETED" ? undefined : toObject(change.object, at.kind);
    }
    await sleep(server.clock, pauseMs, signal);
  }
}

export interface Change {
  readonly type: string;
  readonly object: Json;
}

/** One line of a watch; undefined where the list is too old and has to be read anew. */
export function readChange(line: Json): Change | undefined {
  if (!isJsonObject(line) || typeof line["type"] !== "string") {
    throw new Error("the server's line is not a watch event");
  }
  const object = line["object"] ?? null;
  if (line["type"] !== "ERROR") return { type: line["type"], object };
  const { code, reason, message } = isJsonObject(object) ? object : {};
  if (code === 410) return undefined;
  throw new ApiError(
    typeof code === "number" ? code : 500,
    typeof reason === "string" ? reason : "",
    typeof message === "string" ? message : "the watch failed",
  );
}
