import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { isUnchanged, previousAtKey, previousOfItem, type Previous } from "./correlate.ts";
import { prefixIssues, type Issue } from "./issue.ts";
import type { Check } from "./check.ts";

interface ContainerCheck {
  list(value: readonly unknown[], previous: Previous | undefined, issues: Issue[]): number;
  object(value: object, previous: Previous | undefined, issues: Issue[]): number;
}

type Compile = (schema: JsonSchema) => Check;

/** Checks lists and objects with all that is in them. */
export function compileContainer(schema: JsonSchema, compile: Compile): ContainerCheck {
  return { list: compileList(schema, compile), object: compileObject(schema, compile) };
}

function compileList(schema: JsonSchema, compile: Compile): ContainerCheck["list"] {
  const checkItem = schema.items === undefined ? undefined : compile(schema.items);
  const checkLength = compileLength(schema);
  return (list, previous, issues) => {
    const matches = checkItem === undefined ? 0 : checkItems({ checkItem, list, previous }, issues);
    checkLength?.(list, issues);
    return matches + 2;
  };
}

function checkItems(
  of: { checkItem: Check; list: readonly unknown[]; previous: Previous | undefined },
  issues: Issue[],
): number {
  const { checkItem, list, previous } = of;
  let matches = 0;
  for (let index = 0; index < list.length; index++) {
    const item = list[index];
    const before = issues.length;
    const past = previous === undefined ? undefined : previousOfItem(previous, item);
    matches += checkItem(item, past, issues);
    if (issues.length > before) settle({ issues, before, value: item, past }, `[${index}]`);
  }
  return matches;
}

function compileLength(
  schema: JsonSchema,
): ((list: readonly unknown[], issues: Issue[]) => void) | undefined {
  const { minItems, maxItems, uniqueItems } = schema;
  if (minItems === undefined && maxItems === undefined && !uniqueItems) return undefined;
  return (list, issues) => {
    if (minItems !== undefined && list.length < minItems) {
      issues.push(sizeIssue(list.length, `in body should have at least ${minItems} items`));
    }
    if (maxItems !== undefined && list.length > maxItems) {
      issues.push(tooMany(list.length, maxItems, `in body should have at most ${maxItems} items`));
    }
    if (uniqueItems && new Set(list.map((item) => JSON.stringify(item))).size < list.length) {
      const says = "in body shouldn't contain duplicates";
      issues.push({ field: "", type: "FieldValueInvalid", value: '""', says });
    }
  };
}

function compileObject(schema: JsonSchema, compile: Compile): ContainerCheck["object"] {
  const properties = Object.entries(schema.properties ?? {}).map(([key, property]) => {
    return { key, check: compile(property) };
  });
  const checkOthers = compileOthers(schema, compile);
  const checkSize = compileSize(schema);
  const required = schema.required ?? [];
  return (value, previous, issues) => {
    let matches = 1;
    // cast: the caller tells lists and null apart, and JSON has no other objects.
    const object = value as Readonly<Record<string, unknown>>;
    checkSize?.(object, issues);
    if (checkOthers !== undefined) matches += checkOthers(object, previous, issues);
    for (const { key, check } of properties) {
      if (!hasField(object, key)) continue;
      const field = object[key];
      const before = issues.length;
      const past = previous === undefined ? undefined : previousAtKey(previous, key);
      matches += check(field, past, issues);
      if (issues.length > before) settle({ issues, before, value: field, past }, key);
    }
    for (const key of required) {
      if (hasField(object, key)) continue;
      const says = "in body is required";
      issues.push({ field: key, type: "FieldValueRequired", says, detail: "" });
    }
    return matches;
  };
}

/** An object that never was JSON may hold a field that is undefined; written out it is gone. */
function hasField(object: Readonly<Record<string, unknown>>, key: string): boolean {
  return object[key] !== undefined && Object.hasOwn(object, key);
}

function compileOthers(schema: JsonSchema, compile: Compile): ContainerCheck["object"] | undefined {
  const { additionalProperties } = schema;
  if (additionalProperties === undefined || additionalProperties === true) return undefined;
  const known = new Set(Object.keys(schema.properties ?? {}));
  const check = additionalProperties === false ? forbidden : compile(additionalProperties);
  return (value, previous, issues) => {
    let matches = 0;
    // cast: the caller tells lists and null apart, and JSON has no other objects.
    const object = value as Readonly<Record<string, unknown>>;
    for (const key in object) {
      if (known.has(key)) continue;
      const before = issues.length;
      const past = previous === undefined ? undefined : previousAtKey(previous, key);
      matches += check(object[key], past, issues);
      if (issues.length > before) settle({ issues, before, value: object[key], past }, key);
    }
    return matches;
  };
}

const forbidden: Check = (_value, _previous, issues) => {
  issues.push({ field: "", type: "FieldValueInvalid", says: "in body is a forbidden property" });
  return 0;
};

/**
 * Settles what was found in a child: an unchanged value that an update only carries along is
 * tolerated (ratcheting), anything else gets the child's step put before its path.
 */
function settle(
  found: {
    issues: Issue[];
    before: number;
    value: unknown;
    past: Previous | undefined;
  },
  step: string,
): void {
  const { issues, before, value, past } = found;
  if (past !== undefined && isUnchanged(value, past)) issues.length = before;
  else prefixIssues(issues, before, step);
}

function compileSize(
  schema: JsonSchema,
): ((object: Readonly<Record<string, unknown>>, issues: Issue[]) => void) | undefined {
  const { minProperties, maxProperties } = schema;
  if (minProperties === undefined && maxProperties === undefined) return undefined;
  return (object, issues) => {
    const size = Object.keys(object).length;
    if (minProperties !== undefined && size < minProperties) {
      issues.push(sizeIssue(size, `in body should have at least ${minProperties} properties`));
    }
    if (maxProperties !== undefined && size > maxProperties) {
      const says = `in body should have at most ${maxProperties} properties`;
      issues.push(tooMany(size, maxProperties, says));
    }
  };
}

function sizeIssue(size: number, says: string): Issue {
  return { field: "", type: "FieldValueInvalid", value: `${size}`, says };
}

function tooMany(size: number, most: number, says: string): Issue {
  const detail = `must have at most ${most} items`;
  return { field: "", type: "FieldValueTooMany", value: `${size}`, says, detail };
}
