import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { compilePattern, type Pattern } from "../cel/pattern.ts";
import { checkedFormat, formatCheckOf } from "./formats.ts";
import { goNumber, goQuote } from "./go-text.ts";
import type { Issue } from "./issue.ts";
import { isGoInteger, isNearlyWhole } from "./types.ts";

type ScalarCheck = (value: unknown, issues: Issue[]) => number;

/** Checks strings and numbers. Returns the number of checks passed, see `Check`. */
export function compileScalar(schema: JsonSchema): ScalarCheck {
  const checkText = compileText(schema);
  const checkNumber = compileNumber(schema);
  return (value, issues) => {
    if (typeof value === "string") return checkText(value, issues);
    return typeof value === "number" ? checkNumber(value, issues) : 0;
  };
}

function compileText(schema: JsonSchema): (value: string, issues: Issue[]) => number {
  const checks = [
    ...(schema.maxLength === undefined ? [] : [longest(schema.maxLength)]),
    ...(schema.minLength === undefined ? [] : [shortest(schema.minLength)]),
    ...(schema.pattern ? [matching(schema.pattern, compilePattern(schema.pattern))] : []),
  ];
  const format = checkedFormat(schema.format);
  const isOfFormat = format === undefined ? undefined : formatCheckOf(format);
  const matches = isOfFormat === undefined ? 1 : 2;
  return (value, issues) => {
    // Only the first of these three is reported.
    for (const check of checks) {
      const issue = check(value);
      if (issue === undefined) continue;
      issues.push(issue);
      break;
    }
    if (isOfFormat !== undefined && !isOfFormat(value)) {
      const says = `in body must be of type ${format}: ${goQuote(value)}`;
      issues.push({ field: "", type: "FieldValueTypeInvalid", value: goQuote(value), says });
    }
    return matches;
  };
}

type TextCheck = (value: string) => Issue | undefined;

function longest(length: number): TextCheck {
  const says = `in body should be at most ${length} chars long`;
  // Kubernetes counts characters here and yet speaks of bytes.
  const detail = `may not be more than ${length} bytes`;
  return (value) => {
    if (value.length <= length || codePoints(value) <= length) return undefined;
    return { field: "", type: "FieldValueTooLong", says, detail };
  };
}

function shortest(length: number): TextCheck {
  const says = `in body should be at least ${length} chars long`;
  return (value) => {
    if (value.length >= length * 2 || codePoints(value) >= length) return undefined;
    return { field: "", type: "FieldValueInvalid", value: goQuote(value), says };
  };
}

function matching(source: string, pattern: Pattern): TextCheck {
  const says = `in body should match '${source}'`;
  return (value) => {
    if (pattern.test(value)) return undefined;
    return { field: "", type: "FieldValueInvalid", value: goQuote(value), says };
  };
}

function codePoints(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length - 1; i++) {
    if ((text.charCodeAt(i) & 0xfc00) !== 0xd800) continue;
    if ((text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) count--;
  }
  return count;
}

function compileNumber(schema: JsonSchema): (value: number, issues: Issue[]) => number {
  const checks = [
    ...(schema.multipleOf === undefined ? [] : [multipleOf(schema.multipleOf)]),
    ...(schema.minimum === undefined ? [] : [atLeast(schema.minimum, schema.exclusiveMinimum)]),
    ...(schema.maximum === undefined ? [] : [atMost(schema.maximum, schema.exclusiveMaximum)]),
  ];
  return (value, issues) => {
    for (const check of checks) {
      const says = check(value);
      if (says === undefined) continue;
      issues.push({ field: "", type: "FieldValueInvalid", value: goNumber(value), says });
    }
    return 2;
  };
}

/** What is wrong with a number, if anything. */
type NumberCheck = (value: number) => string | undefined;

/** Against an integer, Kubernetes compares and shows a bound without its fraction. */
function boundFor(value: number, bound: number): number {
  return isGoInteger(value) ? Math.trunc(bound) : bound;
}

function multipleOf(factor: number): NumberCheck {
  return (value) => {
    const bound = boundFor(value, factor);
    return isMultiple(value, bound)
      ? undefined
      : `in body should be a multiple of ${goNumber(bound)}`;
  };
}

function atLeast(minimum: number, isExclusive = false): NumberCheck {
  const words = isExclusive ? "greater than" : "greater than or equal to";
  return (value) => {
    const bound = boundFor(value, minimum);
    if (value > bound || (value === bound && !isExclusive)) return undefined;
    return `in body should be ${words} ${goNumber(bound)}`;
  };
}

function atMost(maximum: number, isExclusive = false): NumberCheck {
  const words = isExclusive ? "less than" : "less than or equal to";
  return (value) => {
    const bound = boundFor(value, maximum);
    if (value < bound || (value === bound && !isExclusive)) return undefined;
    return `in body should be ${words} ${goNumber(bound)}`;
  };
}

function isMultiple(value: number, factor: number): boolean {
  if (factor <= 0) return false;
  if (isGoInteger(value)) return value % factor === 0;
  return isNearlyWhole(factor < 1 ? (1 / factor) * value : value / factor);
}
