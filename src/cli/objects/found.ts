import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { Call, Option } from "../command.ts";
import { usageError } from "../command.ts";
import type { ServedKind } from "./discovery.ts";
import { getObject, listObjects, type Selection } from "./read-objects.ts";
import type { Server } from "./server.ts";
import type { Target } from "./targets.ts";

/** The options by which commands pick objects. */
export const selectOptions: Readonly<Record<string, Option>> = {
  namespace: {
    type: "string",
    value: "NS",
    short: "n",
    description: "the namespace, if not the context's",
  },
  "all-namespaces": { type: "boolean", short: "A", description: "of all namespaces" },
  selector: { type: "string", value: "SELECTOR", short: "l", description: "by their labels" },
  "field-selector": { type: "string", value: "SELECTOR", description: "by their fields" },
};

export interface Found {
  readonly kind: ServedKind;
  readonly object: KubeObject;
}

/** What the call's options select of a kind. */
export function selectionOf(call: Call, server: Server, kind: ServedKind): Selection {
  return {
    kind,
    namespace: call.flag("all-namespaces") ? undefined : server.namespace,
    labelSelector: call.string("selector"),
    fieldSelector: call.string("field-selector"),
  };
}

/** Names and selectors exclude each other; so do names and all namespaces. */
export function refuseContradictions(call: Call, targets: readonly Target[]): void {
  if (targets.every(({ names }) => names.length === 0)) return;
  if ((call.string("selector") ?? call.string("field-selector")) !== undefined) {
    throw usageError("name objects, or select them by labels or fields: not both");
  }
  if (call.flag("all-namespaces")) {
    throw usageError("an object by its name is in one namespace: leave -A out");
  }
}

export interface FoundObjects {
  readonly found: readonly Found[];
  /** The server's sentences about names that are not there. */
  readonly missing: readonly string[];
}

/** Reads every object that the targets name or the options select. */
export async function findAll(
  call: Call,
  server: Server,
  targets: readonly Target[],
): Promise<FoundObjects> {
  const missing: string[] = [];
  const lists = await Promise.all(
    targets.map(async ({ kind, names }): Promise<Found[]> => {
      if (names.length === 0) {
        const { items } = await listObjects(server, selectionOf(call, server, kind));
        return items.map((object) => ({ kind, object }));
      }
      const objects = await Promise.all(
        names.map((name) => {
          const at = { kind, namespace: server.namespace, name };
          return unlessMissing(() => getObject(server, at), missing);
        }),
      );
      return objects.flatMap((object) => (object === undefined ? [] : [{ kind, object }]));
    }),
  );
  return { found: lists.flat(), missing };
}

/** The result, or undefined and a sentence in `missing` where the server says 404. */
export async function unlessMissing<Result>(
  read: () => Promise<Result>,
  missing: string[],
): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    missing.push(error.message);
    return undefined;
  }
}
