import { labelValueErrors, qualifiedNameErrors } from "./name-rules.ts";
import { scanLabelSelector, type Token } from "./label-selector-tokens.ts";
import { ApiError, badRequest } from "./status.ts";

/** All requirements must hold. The empty selector matches everything. */
export type LabelSelector = readonly LabelRequirement[];

export interface LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, without repetition. */
  readonly values: readonly string[];
}

export type LabelOperator = "in" | "notin" | "exists" | "!" | "gt" | "lt";

/**
 * Reads the string form, as in `?labelSelector=a=b,c in (d,e),!f`. Throws an ApiError 400 in
 * Kubernetes' words. `=` and `==` become `in` with one value, `!=` becomes `notin`.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const reader: Reader = { tokens: scanLabelSelector(text), position: 0 };
  const requirements: LabelRequirement[] = [];
  for (;;) {
    const token = peek(reader);
    if (token.type === "end") return requirements;
    if (token.type !== "word" && token.type !== "!") {
      throw unexpected(token, ", expected: !, identifier, or 'end of string'");
    }
    requirements.push(parseRequirement(reader));
    const next = take(reader);
    if (next.type === "end") return requirements;
    if (next.type !== ",") throw unexpected(next, ", expected: ',' or 'end of string'");
    const after = peek(reader);
    if (after.type !== "word" && after.type !== "!") {
      throw unexpected(after, ", expected: identifier after ','");
    }
  }
}

/** Whether an object with these labels is selected. */
export function matchesLabels(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return selector.every((requirement) => {
    const has = labels !== undefined && Object.hasOwn(labels, requirement.key);
    return meets(requirement, has ? labels[requirement.key] : undefined);
  });
}

function meets(requirement: LabelRequirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case "in":
      return value !== undefined && requirement.values.includes(value);
    case "notin":
      return value === undefined || !requirement.values.includes(value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "gt":
      return compares(value, requirement, (left, right) => left > right);
    case "lt":
      return compares(value, requirement, (left, right) => left < right);
  }
}

function compares(
  value: string | undefined,
  requirement: LabelRequirement,
  holds: (left: bigint, right: bigint) => boolean,
): boolean {
  const left = integerOf(value);
  const right = integerOf(requirement.values[0]);
  return left !== undefined && right !== undefined && holds(left, right);
}

function integerOf(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?[0-9]{1,19}$/.test(text)
    ? BigInt(text.replace("+", ""))
    : undefined;
}

interface Reader {
  readonly tokens: readonly Token[];
  position: number;
}

const end: Token = { type: "end", text: "" };

function peek(reader: Reader): Token {
  return reader.tokens[reader.position] ?? end;
}

function take(reader: Reader): Token {
  return reader.tokens[reader.position++] ?? end;
}

function parseRequirement(reader: Reader): LabelRequirement {
  try {
    return parseRequirementUnwrapped(reader);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw badRequest(`unable to parse requirement: ${error.message}`);
  }
}

function parseRequirementUnwrapped(reader: Reader): LabelRequirement {
  const absent = peek(reader).type === "!";
  if (absent) take(reader);
  const token = take(reader);
  if (token.type !== "word") throw unexpected(token, ", expected: identifier");
  const key = token.text;
  const wrong = qualifiedNameErrors(key);
  if (wrong.length > 0) throw badRequest(fieldMessage("<nil>", key, wrong));
  if (absent) return { key, operator: "!", values: [] };
  const follows = peek(reader).type;
  if (follows === "end" || follows === ",") return { key, operator: "exists", values: [] };
  const operator = parseOperator(reader);
  const isSet = operator.text === "in" || operator.text === "notin";
  const values = isSet ? parseValues(reader) : [parseExactValue(reader)];
  const sorted = [...new Set(values)].toSorted();
  assertValues(key, operator.operator, sorted);
  return { key, operator: operator.operator, values: sorted };
}

const operators: Record<string, LabelOperator> = {
  in: "in",
  notin: "notin",
  "=": "in",
  "==": "in",
  "!=": "notin",
  ">": "gt",
  "<": "lt",
};

function parseOperator(reader: Reader): { text: string; operator: LabelOperator } {
  const token = take(reader);
  const operator = Object.hasOwn(operators, token.text) ? operators[token.text] : undefined;
  if (operator !== undefined) return { text: token.text, operator };
  throw unexpected(token, ", expected: in, notin, =, ==, !=, gt, lt");
}

function parseExactValue(reader: Reader): string {
  const follows = peek(reader).type;
  if (follows === "end" || follows === ",") return "";
  const token = take(reader);
  if (token.type !== "word") throw unexpected(token, ", expected: identifier");
  return token.text;
}

/** "(a,b)". Nothing between two commas or parentheses is the empty value, which is a value. */
function parseValues(reader: Reader): string[] {
  const open = take(reader);
  if (open.type !== "(") throw unexpected(open, " expected: '('");
  const values: string[] = [];
  for (;;) {
    const token = take(reader);
    if (token.type === ")" || token.type === ",") {
      values.push("");
      if (token.type === ")") return values;
      continue;
    }
    if (token.type !== "word") throw unexpected(token, ", expected: ',', ')' or identifier");
    values.push(token.text);
    const next = take(reader);
    if (next.type === ")") return values;
    if (next.type !== ",") throw unexpected(next, ", expected: ',' or ')'");
  }
}

function assertValues(key: string, operator: LabelOperator, values: readonly string[]): void {
  const errors: string[] = [];
  values.forEach((value, i) => {
    if ((operator === "gt" || operator === "lt") && integerOf(value) === undefined) {
      const why = "for 'Gt', 'Lt' operators, the value must be an integer";
      errors.push(fieldMessage(`values[${i}]`, value, [why]));
    }
  });
  values.forEach((value, i) => {
    const wrong = labelValueErrors(value);
    if (wrong.length > 0) errors.push(fieldMessage(`values[${i}][${key}]`, value, wrong));
  });
  if (errors.length === 0) return;
  throw badRequest(errors.length === 1 ? (errors[0] ?? "") : `[${errors.join(", ")}]`);
}

function fieldMessage(field: string, value: string, wrong: readonly string[]): string {
  return `${field}: Invalid value: ${JSON.stringify(value)}: ${wrong.join("; ")}`;
}

function unexpected(token: Token, expected: string): ApiError {
  return badRequest(`found '${token.text}'${expected}`);
}
