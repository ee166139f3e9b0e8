import type { JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { joinPath } from "./field-path.ts";
import type { Structural } from "./structural.ts";

/** Prunes a whole object and returns the paths of what went, sorted as Kubernetes reports them. */
export function pruneUnknown(object: unknown, structural: Structural): string[] {
  const unknown: string[] = [];
  pruneValue(object, structural, unknown);
  return unknown.length > 1 ? unknown.sort() : unknown;
}

/**
 * Drops what the schema does not know, in place, and adds the paths of what was dropped. Paths are
 * built while returning from a find, so that a good object costs no strings.
 */
export function pruneValue(
  value: unknown,
  structural: Structural | undefined,
  unknown: string[],
): void {
  if (typeof value !== "object" || value === null) return;
  const keeps = structural?.schema["x-kubernetes-preserve-unknown-fields"] === true;
  pruneContainer(value, { structural, keeps, unknown });
}

interface Pruning {
  readonly structural: Structural | undefined;
  /** Unknown fields stay, though fields that the schema does know are still pruned within. */
  readonly keeps: boolean;
  readonly unknown: string[];
}

function pruneContainer(value: object, pruning: Pruning): void {
  if (Array.isArray(value)) pruneList(value, pruning);
  else if (isJsonObject(value)) pruneObject(value, pruning);
}

function pruneList(list: unknown[], { structural, keeps, unknown }: Pruning): void {
  const items = structural?.items;
  if (keeps && items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    if (typeof item !== "object" || item === null) continue;
    const before = unknown.length;
    // A preserved list preserves within its items as well.
    if (keeps) pruneContainer(item, { structural: items, keeps, unknown });
    else pruneValue(item, items, unknown);
    if (unknown.length > before) prefixPaths(unknown, before, `[${index}]`);
  }
}

function pruneObject(object: JsonObject, { structural, keeps, unknown }: Pruning): void {
  for (const key in object) {
    const child = structural?.properties.get(key) ?? structural?.additional;
    if (child === undefined && !structural?.allowsAnyKey) {
      if (keeps) continue;
      unknown.push(key);
      delete object[key];
      continue;
    }
    const before = unknown.length;
    pruneValue(object[key], child, unknown);
    if (unknown.length > before) prefixPaths(unknown, before, key);
  }
}

function prefixPaths(paths: string[], from: number, step: string): void {
  for (let i = from; i < paths.length; i++) paths[i] = joinPath(step, paths[i] ?? "");
}
