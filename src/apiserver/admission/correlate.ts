import { isJsonObject, jsonEqual } from "../../kernel/json.ts";
import type { Structural } from "./structural.ts";

/**
 * The value that stood at a place before an update. It can be followed into fields, and into lists
 * whose items have keys; items of other lists have no identity and so no past.
 */
export interface Previous {
  readonly structural: Structural;
  readonly value: unknown;
  /** The items of a list-map by their keys, made when the first is asked for. */
  byKeys?: ReadonlyMap<string, unknown>;
}

export function previousAtKey(previous: Previous, key: string): Previous | undefined {
  if (!isJsonObject(previous.value)) return undefined;
  const structural = previous.structural.properties.get(key) ?? previous.structural.additional;
  if (structural === undefined || !Object.hasOwn(previous.value, key)) return undefined;
  return { structural, value: previous.value[key] };
}

/** The item of a list-map with the same keys as `item`, which must have them all. */
export function previousOfItem(previous: Previous, item: unknown): Previous | undefined {
  const structural = previous.structural.items;
  if (structural === undefined) return undefined;
  const key = keyOfItem(previous.structural, item);
  if (key === undefined) return undefined;
  previous.byKeys ??= indexByKeys(previous.structural, previous.value);
  const value = previous.byKeys.get(key);
  return value === undefined ? undefined : { structural, value };
}

function indexByKeys(structural: Structural, list: unknown): Map<string, unknown> {
  const byKeys = new Map<string, unknown>();
  for (const item of Array.isArray(list) ? list.values() : []) {
    const key = keyOfItem(structural, item);
    // Of items with the same keys the first counts, as in Kubernetes.
    if (key !== undefined && !byKeys.has(key)) byKeys.set(key, item);
  }
  return byKeys;
}

/** The keys of an item as one text. Undefined unless it has them all, and all are scalars. */
function keyOfItem({ schema }: Structural, item: unknown): string | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !isJsonObject(item)) return undefined;
  const values = (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => item[key]);
  const isComplete = values.every((value) => value !== undefined && typeof value !== "object");
  return isComplete ? JSON.stringify(values) : undefined;
}

/** Whether nothing changed. The order of a list-map does not matter, that of other lists does. */
export function isUnchanged(value: unknown, previous: Previous): boolean {
  const old = previous.value;
  if (Array.isArray(value)) {
    if (!Array.isArray(old) || old.length !== value.length) return false;
    if (previous.structural.schema["x-kubernetes-list-type"] !== "map") {
      return jsonEqual(value, old);
    }
    return value.every((item) => {
      const before = previousOfItem(previous, item);
      return before !== undefined && isUnchanged(item, before);
    });
  }
  if (!isJsonObject(value)) return jsonEqual(value, old);
  if (!isJsonObject(old) || Object.keys(old).length !== Object.keys(value).length) return false;
  return Object.keys(value).every((key) => {
    const before = previousAtKey(previous, key);
    return before !== undefined && isUnchanged(value[key], before);
  });
}
