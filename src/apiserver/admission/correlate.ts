import { isJsonObject, jsonEqual } from "../../kernel/json.ts";
import type { Structural } from "./structural.ts";

/**
 * The value that stood at a place before an update. It can be followed into fields, and into lists
 * whose items have keys; items of other lists have no identity and so no past.
 */
export interface Previous {
  readonly structural: Structural;
  readonly value: unknown;
}

export function previousAtKey(previous: Previous | undefined, key: string): Previous | undefined {
  if (previous === undefined || !isJsonObject(previous.value)) return undefined;
  const structural = previous.structural.properties.get(key) ?? previous.structural.additional;
  if (structural === undefined || !Object.hasOwn(previous.value, key)) return undefined;
  return { structural, value: previous.value[key] };
}

export function previousOfItem(
  previous: Previous | undefined,
  item: unknown,
): Previous | undefined {
  const structural = previous?.structural.items;
  if (previous === undefined || structural === undefined) return undefined;
  const value = findByKeys(previous.structural, previous.value, item);
  return value === undefined ? undefined : { structural, value };
}

/** The item of a list-map with the same keys as `item`, which must have them all. */
export function findByKeys(structural: Structural, list: unknown, item: unknown): unknown {
  if (structural.schema["x-kubernetes-list-type"] !== "map") return undefined;
  const keys = structural.schema["x-kubernetes-list-map-keys"] ?? [];
  if (!Array.isArray(list) || !isJsonObject(item)) return undefined;
  return list.find((candidate) => isJsonObject(candidate) && hasSameKeys(candidate, item, keys));
}

function hasSameKeys(
  left: Record<string, unknown>,
  right: Record<string, unknown>,
  keys: readonly string[],
): boolean {
  return keys.every((key) => {
    const value = left[key];
    return value !== undefined && typeof value !== "object" && value === right[key];
  });
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
