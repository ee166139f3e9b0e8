import type { Resource } from "../../api/resource.ts";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError, FieldErrorType } from "../../kernel/status.ts";
import type { SchemaRunner, SchemaRunnerOf } from "../contract.ts";
import { compileRoot } from "./compile-structural.ts";
import { fillDefaults } from "./defaults.ts";
import { checkEmbedded, hasEmbedded } from "./embedded.ts";
import { toFieldError, type Issue } from "./issue.ts";
import { checkListTypes, hasListTypes } from "./list-types.ts";
import { pruneUnknown } from "./prune.ts";
import { compileRules, ruleProblems, runRules } from "./rules.ts";
import { compileObjectCheck } from "./schema-check.ts";
import type { Structural } from "./structural.ts";

/**
 * Makes the runners of all kinds. Each is compiled on first use and kept as long as its resource:
 * a changed kind is a new Resource and so gets a new runner.
 */
export function createSchemaRunners(): SchemaRunnerOf {
  const runners = new WeakMap<Resource, SchemaRunner>();
  return (resource) => {
    const known = runners.get(resource);
    if (known !== undefined) return known;
    const runner = createRunner(resource.schema);
    runners.set(resource, runner);
    return runner;
  };
}

/**
 * The rules of a schema that do not compile, each with its place. A kind with any is a mistake: its
 * runner would refuse every object with the same words.
 */
export function findRuleProblems(
  schema: JsonSchema,
): { readonly place: string; readonly problem: string }[] {
  const rules = compileRules(compileRoot(schema));
  return rules === undefined ? [] : ruleProblems(rules);
}

/** One check of whole objects, in the order in which the server reports. */
type ObjectCheck = (object: KubeObject, previous: KubeObject | undefined) => FieldError[];

function createRunner(schema: JsonSchema): SchemaRunner {
  const structural = compileRoot(schema);
  const checks: readonly ObjectCheck[] = [
    schemaCheck(schema, structural),
    ...(hasEmbedded(structural) ? [embeddedCheck(structural)] : []),
    ...(hasListTypes(structural) ? [listCheck(structural)] : []),
  ];
  const rules = compileRules(structural);
  return {
    prune: (object) => pruneUnknown(object, structural),
    applyDefaults: (object) => fillDefaults(object, structural),
    validate: (object, previous) => {
      const errors = checks.flatMap((check) => check(object, previous));
      if (rules === undefined) return errors;
      if (errors.some(({ type }) => blockingTypes.has(type))) return [...errors, rulesNotChecked];
      return [...errors, ...runRules(rules, object, previous)];
    },
  };
}

function schemaCheck(schema: JsonSchema, structural: Structural): ObjectCheck {
  const check = compileObjectCheck(schema);
  return (object, previous) => {
    const issues: Issue[] = [];
    check(object, undefined, issues);
    if (issues.length > 0 && previous !== undefined) {
      // Only now is it worth knowing what changed.
      issues.length = 0;
      check(object, { structural, value: previous }, issues);
    }
    return issues.map(toFieldError);
  };
}

function embeddedCheck(structural: Structural): ObjectCheck {
  return (object) => {
    const errors: FieldError[] = [];
    checkEmbedded(object, structural, errors);
    return errors;
  };
}

/** An object that already had duplicates keeps being accepted, whatever changes in it. */
function listCheck(structural: Structural): ObjectCheck {
  const check = (object: KubeObject): FieldError[] => {
    const errors: FieldError[] = [];
    checkListTypes(object, structural, errors);
    return errors;
  };
  return (object, previous) => {
    const errors = check(object);
    const isOld = errors.length > 0 && previous !== undefined && check(previous).length > 0;
    return isOld ? [] : errors;
  };
}

/** After these a value may not have the type that a rule was compiled for. */
const blockingTypes: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  "FieldValueNotSupported",
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
]);

const rulesNotChecked: FieldError = {
  type: "FieldValueInvalid",
  field: "<nil>",
  value: '"null"',
  detail:
    "some validation rules were not checked because the object was invalid; " +
    "correct the existing errors to complete validation",
};
