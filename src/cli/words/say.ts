import { annotations } from "../../api/index.ts";
import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { type Call, CommandError, usageError } from "../command.ts";
import { discover } from "../objects/discovery.ts";
import { placeOf } from "../objects/delete-object.ts";
import type { Found } from "../objects/found.ts";
import { shownName } from "../objects/kinds.ts";
import { objectPath } from "../objects/paths.ts";
import { getObject, toObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { readTargets } from "../objects/targets.ts";

/** What a person says of an object, by annotation; null takes an earlier word back. */
export type Words = Partial<Record<keyof typeof annotations, string | null>>;

/** Writes a person's words into an object: controllers on any server read them there. */
export async function say(server: Server, found: Found, words: Words): Promise<KubeObject> {
  const written: [string, Json][] = [];
  for (const [name, annotation] of Object.entries(annotations)) {
    // cast: the entries of this object have its own keys.
    const word = words[name as keyof typeof annotations];
    if (word !== undefined) written.push([annotation, word]);
  }
  const answer = await server.ask({
    method: "PATCH",
    path: objectPath(placeOf(found)),
    contentType: "application/merge-patch+json",
    body: { metadata: { annotations: Object.fromEntries(written) } },
  });
  return toObject(answer, found.kind);
}

/** The objects that a command line names, each of which has to be there and of a kind allowed. */
export async function readNamed(
  call: Call,
  server: Server,
  { usage, kinds }: { readonly usage: string; readonly kinds: readonly string[] },
): Promise<Found[]> {
  const targets = readTargets(await discover(server), call.arguments, usage);
  const found: Found[] = [];
  for (const { kind, names } of targets) {
    if (names.length === 0) throw usageError(`name the objects. Usage: berth ${usage}`);
    if (!kinds.includes(kind.kind)) {
      throw new CommandError(`this is for ${kinds.join(", ")}, and not for ${kind.plural}`);
    }
    for (const name of names) {
      const object = await getObject(server, { kind, namespace: server.namespace, name });
      found.push({ kind, object });
    }
  }
  return found;
}

export function nameOf({ kind, object }: Found): string {
  return shownName(kind, object.metadata.name ?? "");
}

/** Whether nothing is done for the object until it is resumed. */
export function isPaused({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[annotations.paused] === "true";
}
