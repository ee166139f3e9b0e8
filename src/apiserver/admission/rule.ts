import type { JsonSchema, ValidationRule } from "../../api/schema/json-schema.ts";
import type { FieldError } from "../../kernel/status.ts";
import {
  CelCompileError,
  CelCostError,
  CelError,
  compileExpression,
  optionalOf,
  type Declared,
  type Program,
  type Value,
} from "../cel/index.ts";
import { joinPath } from "./field-path.ts";
import { goQuote } from "./go-text.ts";

/** What one rule may cost, and then all rules of one object: Kubernetes' own numbers. */
const ruleCostMax = 1_000_000;
export const objectCostMax = 10_000_000;

/** The longest message that an expression may make; a longer one gives way to the plain message. */
const messageBytesMax = 5 * 1024;

/** What is left for the rules of one object. Below zero nothing runs any more. */
export interface Budget {
  left: number;
}

/** A rule of x-kubernetes-validations, compiled. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Runs only where there is an old value to compare with. */
  readonly isTransition: boolean;
  readonly usesOldSelf: boolean;
  /** Why the rule can never run; then it fails every object. */
  readonly compileError: string | undefined;
  /**
   * Checks one value, given with its past as `self` and `oldSelf`. Returns what is wrong, with a
   * field relative to the value.
   */
  check(values: () => readonly Value[], budget: Budget): FieldError | undefined;
}

/** Compiles a rule for values of a schema. Errors show the type of the schema as the value. */
export function compileRule(
  rule: ValidationRule,
  declared: Declared,
  schema: JsonSchema,
): CompiledRule {
  const shownType = schema.type ?? "";
  const field = fieldOf(rule.fieldPath, schema);
  const programs = compilePrograms(rule, declared);
  if ("problem" in programs) {
    const detail = `rule compile error: ${programs.problem}`;
    const check = (): FieldError => invalid(shownType, detail);
    return { rule, isTransition: false, usesOldSelf: false, compileError: programs.problem, check };
  }
  const usesOldSelf = programs.main.uses.has("oldSelf");
  return {
    rule,
    usesOldSelf,
    isTransition: usesOldSelf && rule.optionalOldSelf !== true,
    compileError: undefined,
    check: (values, budget) => runRule({ rule, shownType, field, ...programs }, values, budget),
  };
}

interface Programs {
  readonly main: Program;
  readonly message: Program | undefined;
}

function compilePrograms(rule: ValidationRule, declared: Declared): Programs | { problem: string } {
  const oldType = rule.optionalOldSelf ? optionalOf(declared.type) : declared.type;
  const variables = [
    { name: "self", type: declared.type },
    { name: "oldSelf", type: oldType },
  ];
  try {
    const main = compileExpression(rule.rule, variables);
    if (main.type.kind !== "bool") return { problem: "cel expression must evaluate to a bool" };
    // A message that does not compile is no reason to refuse an object: the plain one is shown.
    const message = rule.messageExpression
      ? compileMessage(rule.messageExpression, variables)
      : undefined;
    return { main, message };
  } catch (error) {
    if (error instanceof CelCompileError)
      return { problem: `compilation failed: ${error.message}` };
    throw error;
  }
}

function compileMessage(
  source: string,
  variables: Parameters<typeof compileExpression>[1],
): Program | undefined {
  try {
    const program = compileExpression(source, variables);
    return program.type.kind === "string" ? program : undefined;
  } catch (error) {
    if (error instanceof CelCompileError) return undefined;
    throw error;
  }
}

interface Runnable extends Programs {
  readonly rule: ValidationRule;
  readonly shownType: string;
  readonly field: string;
}

function runRule(
  runnable: Runnable,
  valuesOf: () => readonly Value[],
  budget: Budget,
): FieldError | undefined {
  const { rule, main, shownType } = runnable;
  try {
    const values = valuesOf();
    const { value, cost } = main.run(values, ruleCostMax);
    if (cost > budget.left) return outOfBudget(shownType, budget);
    budget.left -= cost;
    if (value === true) return undefined;
    return failure(runnable, messageOf(runnable, values, budget));
  } catch (error) {
    if (error instanceof CelCostError) {
      budget.left = -1;
      const why = "no further validation rules will be run due to call cost exceeds limit for rule";
      return invalid(shownType, `'${error.message}': ${why}: ${ruleText(rule)}`);
    }
    if (!(error instanceof CelError)) throw error;
    return invalid(shownType, evaluationProblem(error.message, rule));
  }
}

export function outOfBudget(shownType: string, budget: Budget): FieldError {
  budget.left = -1;
  const why = "validation failed due to running out of cost budget";
  return invalid(shownType, `${why}, no further validation rules will be run`);
}

function evaluationProblem(problem: string, rule: ValidationRule): string {
  if (!problem.startsWith("no such overload")) {
    return `${problem} evaluating rule: ${ruleText(rule)}`;
  }
  const why = "call arguments did not match a supported operator, function or macro signature";
  return `'${problem}': ${why} for rule: ${ruleText(rule)}`;
}

function ruleText({ rule, message }: ValidationRule): string {
  return (message || rule).trim();
}

function messageOf({ rule, message }: Runnable, values: readonly Value[], budget: Budget): string {
  const plain = rule.message ? rule.message.trim() : `failed rule: ${ruleText(rule)}`;
  if (message === undefined) return plain;
  try {
    const { value, cost } = message.run(values, ruleCostMax);
    budget.left -= cost;
    const text = typeof value === "string" ? value.trim() : "";
    const isUsable = text !== "" && !text.includes("\n");
    return isUsable && Buffer.byteLength(text) <= messageBytesMax ? text : plain;
  } catch (error) {
    if (error instanceof CelError || error instanceof CelCostError) return plain;
    throw error;
  }
}

function failure({ rule, shownType, field }: Runnable, detail: string): FieldError {
  switch (rule.reason) {
    case "FieldValueRequired":
    case "FieldValueForbidden":
      return { type: rule.reason, field, detail };
    case "FieldValueDuplicate":
      return { type: rule.reason, field, value: goQuote(shownType), detail: "" };
    default:
      return { ...invalid(shownType, detail), field };
  }
}

function invalid(shownType: string, detail: string): FieldError {
  return { type: "FieldValueInvalid", field: "", value: goQuote(shownType), detail };
}

const fieldStep = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/g;

/**
 * ".a.b" and ".a['b']" as errors show them: "a.b" for fields, "a[b]" for keys of a map. A path that
 * the schema does not have is ignored, and the error stays where the rule is.
 */
function fieldOf(fieldPath: string | undefined, schema: JsonSchema): string {
  let at: JsonSchema = schema;
  let field = "";
  for (const [, plain, quoted = ""] of (fieldPath ?? "").matchAll(fieldStep)) {
    const name = plain ?? quoted.replaceAll(/\\(.)/g, "$1");
    const next = childOf(at, name);
    if (next === undefined) return "";
    if (at.properties === undefined) field += `[${name}]`;
    else field = joinPath(field, name);
    at = next;
  }
  return field;
}

function childOf(schema: JsonSchema, name: string): JsonSchema | undefined {
  if (schema.properties !== undefined) return schema.properties[name];
  const { additionalProperties } = schema;
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}
