import { parseJsonPath, type PathFilter, type PathStep } from "./json-path-parser.ts";
import { isJsonObject } from "./json.ts";

/** A compiled path. It never throws: what is not there, or has another shape, is not found. */
export interface JsonPath {
  /** Every match, in the order of the document. */
  all(root: unknown): unknown[];
  /** The first match, which is all that a table cell shows. */
  first(root: unknown): unknown;
}

/**
 * Compiles the part of JSONPath that printer columns and scale paths use: `.a.b`, `['a.b']`,
 * `.a\.b`, `[0]`, `[-1]`, `[*]`, `.*` and filters such as `[?(@.type=="Ready")]`. Throws an
 * ApiError 400 for anything else.
 */
export function compileJsonPath(path: string): JsonPath {
  const steps = parseJsonPath(path);
  const all = (root: unknown): unknown[] => {
    return steps.reduce<unknown[]>((found, step) => found.flatMap((v) => take(v, step)), [root]);
  };
  return { all, first: (root) => all(root)[0] };
}

/**
 * The member names of a plain path such as `.spec.replicas`; undefined for a path with indices,
 * wildcards or filters, under which nothing could be written.
 */
export function memberNames(path: string): string[] | undefined {
  const names: string[] = [];
  for (const step of parseJsonPath(path)) {
    if (step.take !== "member") return undefined;
    names.push(step.name);
  }
  return names;
}

function take(value: unknown, step: PathStep): unknown[] {
  if (Array.isArray(value)) return takeOfList(value, step);
  if (!isJsonObject(value)) return [];
  if (step.take === "values") return Object.values(value);
  if (step.take !== "member" || !Object.hasOwn(value, step.name)) return [];
  return [value[step.name]];
}

function takeOfList(list: readonly unknown[], step: PathStep): unknown[] {
  switch (step.take) {
    case "member":
      return [];
    case "index": {
      const index = step.index < 0 ? step.index + list.length : step.index;
      return index >= 0 && index < list.length ? [list[index]] : [];
    }
    case "elements":
    case "values":
      return [...list];
    case "filter":
      return list.filter((item) => passes(item, step.filter));
  }
}

function passes(item: unknown, filter: PathFilter): boolean {
  const lefts = filter.left.reduce<unknown[]>(
    (found, step) => found.flatMap((value) => take(value, step)),
    [item],
  );
  if (filter.operator === "exists") return lefts.length > 0;
  const left = lefts[0];
  if (lefts.length !== 1 || typeof left !== typeof filter.right) return false;
  return compares(left, filter.right, filter.operator);
}

type Comparison = Exclude<PathFilter["operator"], "exists">;

function compares(left: unknown, right: string | number | boolean, operator: Comparison): boolean {
  if (operator === "==") return left === right;
  if (operator === "!=") return left !== right;
  const order = orderOf(left, right);
  if (order === undefined) return false;
  switch (operator) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

function orderOf(left: unknown, right: unknown): number | undefined {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left !== "string" || typeof right !== "string") return undefined;
  return left < right ? -1 : Number(left > right);
}
