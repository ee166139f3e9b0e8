import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { compileComposition } from "./composition.ts";
import { compileContainer } from "./containers.ts";
import type { Check } from "./check.ts";
import { goShown } from "./go-text.ts";
import { dedupeIssues, type Issue } from "./issue.ts";
import { compileScalar } from "./scalars.ts";
import { compileType } from "./types.ts";
import { jsonEqual } from "../../kernel/json.ts";
import { isImmutable } from "../objects/index.ts";

/**
 * Compiles the schema of whole objects. What can never change and was found right stays right: of
 * an object whose status changes the rest is not looked at again.
 */
export function compileObjectCheck(schema: JsonSchema): Check {
  return compileWith(schema, (member) => onceRight(compileCheck(member)));
}

function onceRight(check: Check): Check {
  const right = new WeakMap<object, number>();
  return (value, previous, issues) => {
    // With a past the same value may be pardoned, which is not the same as right.
    if (previous !== undefined || !isImmutable(value)) return check(value, previous, issues);
    const known = right.get(value);
    if (known !== undefined) return known;
    const before = issues.length;
    const matches = check(value, previous, issues);
    if (issues.length === before) right.set(value, matches);
    return matches;
  };
}

/** Compiles a schema, once. Order and wording of what is found are kube-openapi's. */
function compileCheck(schema: JsonSchema): Check {
  return compileWith(schema, compileCheck);
}

function compileWith(schema: JsonSchema, compileMember: (schema: JsonSchema) => Check): Check {
  const checkType = compileType(schema);
  const checkComposition = compileComposition(schema, compileCheck);
  const checkScalar = compileScalar(schema);
  const checkContainer = compileContainer(schema, compileMember);
  const checkEnum = compileEnum(schema);
  // Composition, enum and the value itself always count as looked at.
  const base = checkComposition === undefined ? 4 : 3;

  const check: Check = (value, previous, issues) => {
    let matches = checkType(value, issues);
    if (value === null) {
      checkEnum?.(value, issues);
      return matches;
    }
    matches += base;
    if (checkComposition !== undefined) matches += checkComposition(value, previous, issues);
    const isContainer = typeof value === "object";
    if (!isContainer) matches += checkScalar(value, issues);
    else if (Array.isArray(value)) matches += checkContainer.list(value, previous, issues);
    checkEnum?.(value, issues);
    if (isContainer && !Array.isArray(value)) {
      matches += checkContainer.object(value, previous, issues);
    }
    return matches;
  };
  return checkComposition === undefined ? check : withoutRepetitions(check);
}

function withoutRepetitions(check: Check): Check {
  return (value, previous, issues) => {
    const before = issues.length;
    const matches = check(value, previous, issues);
    if (issues.length > before + 1) dedupeIssues(issues, before);
    return matches;
  };
}

function compileEnum(schema: JsonSchema): ((value: unknown, issues: Issue[]) => void) | undefined {
  const allowed = schema.enum;
  if (allowed === undefined || allowed.length === 0) return undefined;
  const scalars = new Set<unknown>(allowed.filter((item) => item !== null));
  const texts = allowed.map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
  const says = `in body should be one of [${texts.join(" ")}]`;
  const detail = `supported values: ${texts.map(goShown).join(", ")}`;
  return (value, issues) => {
    if (scalars.has(value)) return;
    // Kubernetes converts before it compares, and Go's conversion to an integer truncates.
    if (typeof value === "number" && scalars.has(Math.trunc(value))) return;
    if (typeof value === "object" && value !== null) {
      if (allowed.some((item) => jsonEqual(item, value))) return;
    }
    issues.push({ field: "", type: "FieldValueNotSupported", value: goShown(value), says, detail });
  };
}
