import { isJsonObject, jsonEqual } from "../kernel/json.ts";
import type { Shape } from "./machine.ts";

/** One field that is not as it should be. Paths are dotted: `cpu.cores`, `disks[root].cache`. */
export interface Difference {
  readonly path: string;
  readonly wanted: unknown;
  readonly seen: unknown;
}

/** Written and never read back; or said for the moment in which something is made, and no later. */
const unreadable = new Set(["cloudInit.passwordHash", "firmware.storage"]);

/** Sets: the hypervisor keeps them in an order of its own. */
const unordered = new Set(["tags", "networks[].trunks"]);

/**
 * What would have to change for `seen` to be as `wanted`. What `wanted` leaves out is left as it
 * is. Both sides speak the driver's dialect of our words: `wanted` has gone through `fit`.
 */
export function shapeDifferences(wanted: Shape, seen: Shape): readonly Difference[] {
  return [...compare("", wanted, seen)];
}

function* compare(path: string, wanted: unknown, seen: unknown): Iterable<Difference> {
  if (wanted === undefined || unreadable.has(path)) return;
  if (isJsonObject(wanted)) {
    for (const [key, value] of Object.entries(wanted)) {
      yield* compare(join(path, key), value, isJsonObject(seen) ? seen[key] : undefined);
    }
    return;
  }
  if (isNamedList(wanted)) {
    yield* compareByName(path, wanted, seen);
    return;
  }
  const pattern = path.replaceAll(/\[[^\]]*\]/g, "[]");
  const isEqual = unordered.has(pattern)
    ? jsonEqual(ordered(wanted), ordered(seen))
    : jsonEqual(wanted, seen);
  if (!isEqual) yield { path, wanted, seen };
}

/** Disks, cards and cpu features are known by their names, never by their places. */
function* compareByName(
  path: string,
  wanted: readonly Named[],
  seen: unknown,
): Iterable<Difference> {
  const there = isNamedList(seen) ? seen : [];
  for (const item of wanted) {
    const name = nameOf(item);
    const found = there.find((candidate) => nameOf(candidate) === name);
    if (found === undefined) yield { path: `${path}[${name}]`, wanted: item, seen: undefined };
    else yield* compare(`${path}[${name}]`, item, found);
  }
}

type Named = { readonly name: string } | { readonly network: string };

function isNamedList(value: unknown): value is readonly Named[] {
  return Array.isArray(value) && value.length > 0 && value.every(isNamed);
}

function isNamed(value: unknown): value is Named {
  return isJsonObject(value) && ("name" in value || "network" in value);
}

function nameOf(item: Named): string {
  return "name" in item ? item.name : item.network;
}

function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function ordered(value: unknown): unknown {
  return Array.isArray(value) ? value.map(String).toSorted() : value;
}
