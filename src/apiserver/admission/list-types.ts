import type { FieldError } from "../../kernel/status.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { goShown } from "./go-text.ts";
import { prefixFields } from "./field-path.ts";
import type { Structural } from "./structural.ts";

/** Whether any list below has x-kubernetes-list-type set or map; if none has, nothing is walked. */
export function hasListTypes(structural: Structural): boolean {
  const type = structural.schema["x-kubernetes-list-type"];
  if (type === "set" || type === "map") return true;
  const children = [structural.items, structural.additional, ...structural.properties.values()];
  return children.some((child) => child !== undefined && hasListTypes(child));
}

/** Checks that sets hold no value twice and list-maps no key twice. */
export function checkListTypes(value: unknown, structural: Structural, errors: FieldError[]): void {
  if (Array.isArray(value)) checkList(value, structural, errors);
  else if (isJsonObject(value)) checkObject(value, structural, errors);
}

function checkObject(
  object: Readonly<Record<string, unknown>>,
  structural: Structural,
  errors: FieldError[],
): void {
  for (const key in object) {
    const value = object[key];
    if (typeof value !== "object") continue;
    const property = structural.properties.get(key);
    const child = property ?? structural.additional;
    if (child === undefined) continue;
    const before = errors.length;
    checkListTypes(value, child, errors);
    const step = property === undefined ? `[${key}]` : key;
    if (errors.length > before) prefixFields(errors, before, step);
  }
}

function checkList(list: readonly unknown[], structural: Structural, errors: FieldError[]): void {
  const type = structural.schema["x-kubernetes-list-type"];
  if (type === "set") checkUnique(list, list, errors);
  if (type === "map") checkListMap(list, structural, errors);
  if (structural.items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    const before = errors.length;
    checkListTypes(list[index], structural.items, errors);
    if (errors.length > before) prefixFields(errors, before, `[${index}]`);
  }
}

function checkListMap(
  list: readonly unknown[],
  structural: Structural,
  errors: FieldError[],
): void {
  const keys = structural.schema["x-kubernetes-list-map-keys"] ?? [];
  const stray = list.findIndex((item) => item !== null && !isJsonObject(item));
  if (stray >= 0) {
    const detail = "must be an object for an array of list-type map";
    const value = goShown(list[stray]);
    errors.push({ type: "FieldValueInvalid", field: `[${stray}]`, value, detail });
    return;
  }
  if (list.length < 2) return;
  const [key] = keys;
  if (keys.length === 1 && key !== undefined) checkSingleKey(list, key, errors);
  else
    checkUnique(
      list.map((item) => keysOf(item, keys)),
      undefined,
      errors,
    );
}

// The common case, without building an object per item.
function checkSingleKey(list: readonly unknown[], key: string, errors: FieldError[]): void {
  const values = list.map((item) => (isJsonObject(item) ? item[key] : undefined));
  if (new Set(values).size === values.length && values.every(isScalar)) return;
  checkUnique(
    list.map((item) => keysOf(item, [key])),
    undefined,
    errors,
  );
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object";
}

function keysOf(item: unknown, keys: readonly string[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  if (!isJsonObject(item)) return found;
  for (const key of keys) if (Object.hasOwn(item, key)) found[key] = item[key];
  return found;
}

/** Reports the second occurrence of each repeated value, and only that one. */
function checkUnique(
  values: readonly unknown[],
  shown: readonly unknown[] | undefined,
  errors: FieldError[],
): void {
  const seen = new Map<unknown, number>();
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    const identity = typeof value === "object" && value !== null ? canonical(value) : value;
    const times = (seen.get(identity) ?? 0) + 1;
    seen.set(identity, times);
    if (times !== 2) continue;
    const text = goShown((shown ?? values)[index]);
    errors.push({ type: "FieldValueDuplicate", field: `[${index}]`, value: text, detail: "" });
  }
}

/** JSON with sorted keys: equal values give equal texts, and no scalar looks like one. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (!isJsonObject(item)) return item;
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
