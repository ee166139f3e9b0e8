import type { Orphan } from "../../api/index.ts";
import { type Call, CommandError, usageError } from "../command.ts";
import { discover, type ServedKind } from "../objects/discovery.ts";
import { resolveKind } from "../objects/kinds.ts";
import { getObject, listObjects } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";

/** The Orphans that a server has, and their kind. */
export interface Orphans {
  readonly kind: ServedKind;
  readonly items: readonly Orphan[];
}

/** Reads them all; with `--hypervisor` those of one. */
export async function readOrphans(call: Call, server: Server): Promise<Orphans> {
  const kinds = await discover(server);
  const kind = resolveKind(kinds, "orphans");
  const { items } = await listObjects(server, { kind });
  // cast: the server admitted them as Orphans.
  const all = items as unknown as Orphan[];
  const hypervisor = call.string("hypervisor");
  // What is left of a Hypervisor that is not declared any more can still be asked for.
  if (hypervisor !== undefined && all.every(({ spec }) => spec.hypervisor !== hypervisor)) {
    const at = { kind: resolveKind(kinds, "hypervisors"), namespace: "", name: hypervisor };
    await getObject(server, at);
  }
  const here = all.filter(({ spec }) => hypervisor === undefined || spec.hypervisor === hypervisor);
  return { kind, items: here.toSorted(inOrder) };
}

function inOrder({ spec: left }: Orphan, { spec: right }: Orphan): number {
  const text = ({ hypervisor, kind, externalId }: Orphan["spec"]): string => {
    return [hypervisor, kind, externalId].join("\n");
  };
  return text(left).localeCompare(text(right), "en", { numeric: true });
}

/** The ones that people named, by the id on the hypervisor or by the object's name. */
export function named({ items }: Orphans, words: readonly string[]): Orphan[] {
  if (words.length === 0) throw usageError("say which: by the ID that berth orphans list shows");
  return words.map((word) => oneNamed(items, word));
}

function oneNamed(items: readonly Orphan[], word: string): Orphan {
  const found = items.filter(({ metadata, spec }) => {
    return spec.externalId === word || metadata.name === word;
  });
  const [orphan, ...others] = found;
  if (orphan === undefined) {
    throw new CommandError(`there is no Orphan ${word}: see berth orphans list`);
  }
  if (others.length === 0) return orphan;
  const places = found.map(({ spec }) => `${spec.kind} on ${spec.hypervisor}`).join(", ");
  throw new CommandError(`${word} means several (${places}): use the name, or --hypervisor`);
}

/** The space that it takes, as far as that is known. */
export function bytesOf({ status }: Orphan): number {
  const bytes = Number(status?.size ?? 0);
  return Number.isFinite(bytes) ? bytes : 0;
}
