import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { goQuote } from "./go-text.ts";
import { checkedFormat } from "./formats.ts";
import type { Issue } from "./issue.ts";

type TypeCheck = (value: unknown, issues: Issue[]) => number;

/** Checks the JSON type of a value. Returns the number of checks passed, see `Check`. */
export function compileType(schema: JsonSchema): TypeCheck {
  const types = typesOf(schema);
  const format = checkedFormat(schema.format);
  const expected = types.join(",");
  if (types.length === 0 && format === undefined) return (value) => (value === null ? 1 : 0);
  const isNumeric = types.includes("integer") || types.includes("number");
  const checkNull = (issues: Issue[]): number => {
    if (schema.nullable || types.length === 0) return 1;
    issues.push(typeIssue(expected, "null"));
    return 0;
  };

  const check: TypeCheck = (value, issues) => {
    const actual = jsonTypeOf(value);
    if (types.includes(actual) || fitsNumber(types, actual, value)) return 2;
    const isText = actual === "string" || actual === "array";
    // Kubernetes compares a formatted value with the name of the format, and lets lists pass.
    if (format !== undefined && isText && !isNumeric) return 2;
    const isFormatShown = format !== undefined && !isText;
    issues.push(
      isFormatShown ? typeIssue(format, goFormatOf(actual)) : typeIssue(expected, actual),
    );
    return 1;
  };
  return (value, issues) => (value === null ? checkNull(issues) : check(value, issues));
}

function typesOf(schema: JsonSchema): string[] {
  if (schema["x-kubernetes-int-or-string"]) return ["integer", "string"];
  return schema.type === undefined ? [] : [schema.type];
}

function typeIssue(expected: string, actual: string): Issue {
  const says = `in body must be of type ${expected}: ${goQuote(actual)}`;
  return { field: "", type: "FieldValueTypeInvalid", value: goQuote(actual), says };
}

/** Go decodes whole numbers within 64 bits as integers and all others as floats. */
function jsonTypeOf(value: unknown): string {
  switch (typeof value) {
    case "number":
      return isGoInteger(value) ? "integer" : "number";
    case "object":
      return Array.isArray(value) ? "array" : "object";
    default:
      return typeof value;
  }
}

export function isGoInteger(value: number): boolean {
  return Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63;
}

function fitsNumber(types: readonly string[], actual: string, value: unknown): boolean {
  if (actual === "integer") return types.includes("number");
  return actual === "number" && types.includes("integer") && isNearlyWhole(Number(value));
}

/** Kubernetes forgives a float that differs from a whole number only by rounding. */
export function isNearlyWhole(value: number): boolean {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false;
  const whole = Math.trunc(value);
  if (whole === value) return true;
  return whole !== 0 && Math.abs(value - whole) / (Math.abs(value) + Math.abs(whole)) < 1e-9;
}

function goFormatOf(actual: string): string {
  if (actual === "integer") return "int64";
  return actual === "number" ? "float64" : "";
}
