import type { ValidationRule } from "./json-schema.ts";

type RuleDetails = Pick<ValidationRule, "reason" | "fieldPath" | "messageExpression">;

/** A CEL rule and the sentence that the user reads when it is broken: what is wrong, what to do. */
export function rule(
  expression: string,
  message: string,
  details: RuleDetails = {},
): ValidationRule {
  return { rule: expression, message, ...details };
}

/** The value may be set once; from then on it stays. Only for fields that are there or required. */
export function immutable(message: string): ValidationRule {
  return rule("self == oldSelf", message, { reason: "FieldValueForbidden" });
}

/** Of these optional fields exactly one has to be there. */
export function exactlyOne(fields: readonly string[], message: string): ValidationRule {
  return rule(`${countOf(fields)} == 1`, message);
}

/** Of these optional fields one may be there, not two. */
export function atMostOne(fields: readonly string[], message: string): ValidationRule {
  return rule(`${countOf(fields)} <= 1`, message);
}

function countOf(fields: readonly string[]): string {
  return `[${fields.map((field) => `has(self.${field})`).join(", ")}].filter(x, x).size()`;
}
