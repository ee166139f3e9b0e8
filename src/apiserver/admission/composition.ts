import type { JsonSchema } from "../../api/schema/json-schema.ts";
import type { Issue } from "./issue.ts";
import type { Check } from "./check.ts";

/**
 * Checks anyOf, oneOf, allOf and not, in the order and words of kube-openapi. What is old and
 * unchanged gets no pardon within them, only as a whole: an alternative fits or it does not.
 */
export function compileComposition(
  schema: JsonSchema,
  compile: (schema: JsonSchema) => Check,
): Check | undefined {
  const checks = [
    ...(schema.anyOf?.length ? [anyOf(schema.anyOf.map(compile))] : []),
    ...(schema.oneOf?.length ? [oneOf(schema.oneOf.map(compile))] : []),
    ...(schema.allOf?.length ? [allOf(schema.allOf.map(compile))] : []),
    ...(schema.not === undefined ? [] : [not(compile(schema.not))]),
  ];
  if (checks.length === 0) return undefined;
  return (value, _previous, issues) => {
    let matches = 1;
    for (const check of checks) matches += check(value, undefined, issues);
    return matches;
  };
}

/** What one alternative came to. */
interface Attempt {
  readonly matches: number;
  readonly issues: readonly Issue[];
}

function anyOf(alternatives: readonly Check[]): Check {
  return (value, _previous, issues) => {
    let best: Attempt | undefined;
    for (const alternative of alternatives) {
      const attempt = tryAlternative(alternative, value);
      if (attempt.issues.length === 0) return attempt.matches;
      if (best === undefined || attempt.matches > best.matches) best = attempt;
    }
    issues.push(composite("must validate at least one schema (anyOf)"));
    return report(best, issues);
  };
}

function oneOf(alternatives: readonly Check[]): Check {
  return (value, _previous, issues) => {
    let best: Attempt | undefined;
    const valid: Attempt[] = [];
    for (const alternative of alternatives) {
      const attempt = tryAlternative(alternative, value);
      if (attempt.issues.length === 0) valid.push(attempt);
      else if (best === undefined || attempt.matches > best.matches) best = attempt;
    }
    const [first] = valid;
    if (valid.length === 1 && first !== undefined) return first.matches;
    const count = valid.length === 0 ? "none valid" : `${valid.length} valid alternatives`;
    issues.push(composite(`must validate one and only one schema (oneOf). Found ${count}`));
    return valid.length === 0 ? report(best, issues) : 0;
  };
}

function allOf(alternatives: readonly Check[]): Check {
  return (value, _previous, issues) => {
    let matches = 0;
    let valid = 0;
    for (const alternative of alternatives) {
      const before = issues.length;
      matches += alternative(value, undefined, issues);
      if (issues.length === before) valid++;
    }
    if (valid < alternatives.length) {
      const none = valid === 0 ? ". None validated" : "";
      issues.push(composite(`must validate all the schemas (allOf)${none}`));
    }
    return matches;
  };
}

function not(check: Check): Check {
  return (value, _previous, issues) => {
    if (tryAlternative(check, value).issues.length === 0) {
      issues.push(composite("must not validate the schema (not)"));
    }
    return 0;
  };
}

function tryAlternative(check: Check, value: unknown): Attempt {
  const issues: Issue[] = [];
  return { matches: check(value, undefined, issues), issues };
}

function report(best: Attempt | undefined, issues: Issue[]): number {
  if (best === undefined) return 0;
  issues.push(...best.issues);
  return best.matches;
}

function composite(says: string): Issue {
  return { field: "", type: "FieldValueInvalid", says, isComposite: true };
}
