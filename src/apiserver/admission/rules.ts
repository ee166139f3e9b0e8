import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { FieldError } from "../../kernel/status.ts";
import { declareSchema, none, Optional, type Declared, type Value } from "../cel/index.ts";
import { isUnchanged, previousAtKey, previousOfItem, type Previous } from "./correlate.ts";
import { isImmutable } from "../objects/index.ts";
import { prefixFields } from "./field-path.ts";
import { compileRule, objectCostMax, outOfBudget, type Budget, type CompiledRule } from "./rule.ts";
import type { Structural } from "./structural.ts";

/** The rules at one place of a schema and below it. Places without rules have none of these. */
export interface RuleNode {
  readonly structural: Structural;
  readonly declared: Declared | undefined;
  readonly rules: readonly CompiledRule[];
  readonly properties: readonly (readonly [string, RuleNode])[];
  readonly additional: RuleNode | undefined;
  readonly items: RuleNode | undefined;
  readonly allOf: readonly RuleNode[];
  /** What passed the rules of this place while it stayed the same, and what that cost. */
  readonly passed: WeakMap<object, number>;
}

/**
 * Compiles the rules of a schema. Undefined when there are none: as in Kubernetes rules in an allOf
 * count only beside others, because it looks for rules along the properties before it compiles any.
 */
export function compileRules(structural: Structural): RuleNode | undefined {
  return hasRules(structural.schema) ? compileNode(structural, structural.schema) : undefined;
}

function hasRules(schema: JsonSchema): boolean {
  if (schema["x-kubernetes-validations"]?.length) return true;
  const { properties, items, additionalProperties } = schema;
  if (items !== undefined && hasRules(items)) return true;
  if (typeof additionalProperties === "object" && hasRules(additionalProperties)) return true;
  return Object.values(properties ?? {}).some(hasRules);
}

/** `validation` is the schema that holds the rules: the place's own, or one of its allOf. */
function compileNode(structural: Structural, validation: JsonSchema): RuleNode | undefined {
  const declared = declareSchema(structural.schema, structural.isResource);
  const declaredRules = validation["x-kubernetes-validations"] ?? [];
  const rules =
    declared === undefined
      ? []
      : declaredRules
          .filter(({ rule }) => rule.trim() !== "")
          .map((rule) => compileRule(rule, declared, structural.schema));
  const node = {
    structural,
    declared,
    rules,
    properties: compileProperties(structural, validation),
    additional: compileAdditional(structural, validation),
    items: compileChild(structural.items, validation.items),
    allOf: (validation.allOf ?? []).flatMap((part) => compileNode(structural, part) ?? []),
    passed: new WeakMap<object, number>(),
  };
  const children = node.properties.length + node.allOf.length;
  const isEmpty = rules.length + children === 0 && !node.additional && !node.items;
  return isEmpty ? undefined : node;
}

function compileProperties(
  structural: Structural,
  validation: JsonSchema,
): (readonly [string, RuleNode])[] {
  return Object.entries(validation.properties ?? {}).flatMap(([key, schema]) => {
    const child = compileChild(structural.properties.get(key), schema);
    return child === undefined ? [] : [[key, child] as const];
  });
}

function compileAdditional(
  structural: Structural,
  { additionalProperties }: JsonSchema,
): RuleNode | undefined {
  if (typeof additionalProperties !== "object") return undefined;
  return compileChild(structural.additional, additionalProperties);
}

function compileChild(
  structural: Structural | undefined,
  validation: JsonSchema | undefined,
): RuleNode | undefined {
  if (structural === undefined || validation === undefined) return undefined;
  return compileNode(structural, validation);
}

/** Runs all rules over an object. Only sound for objects without schema errors. */
export function runRules(
  root: RuleNode,
  object: object,
  previous: object | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  const past =
    previous === undefined ? undefined : { structural: root.structural, value: previous };
  const budget = { left: objectCostMax };
  visit(root, placeOf(object, past, undefined), { errors, budget, failures: 0 });
  return errors;
}

/** A value on the way down. */
interface Place {
  readonly value: unknown;
  /** What stood here before; undefined where nothing did, or where places have no identity. */
  readonly past: Previous | undefined;
  /** If this did not change, failures here are old ones: the place itself, or the next above. */
  readonly judge: Judge | undefined;
  /** The judge of the place above. */
  readonly outerJudge: Judge | undefined;
  /** Within an allOf nothing below finds a judge of its own. */
  readonly keepsJudge: boolean;
}

interface Judge {
  readonly value: unknown;
  readonly past: Previous;
  /** Asked at every failing rule below, and answered once. */
  verdict?: boolean;
}

function placeOf(value: unknown, past: Previous | undefined, above: Place | undefined): Place {
  const outerJudge = above?.judge;
  const isOwn = past !== undefined && above?.keepsJudge !== true;
  const judge = isOwn ? { value, past } : outerJudge;
  return { value, past, judge, outerJudge, keepsJudge: above?.keepsJudge === true };
}

interface Run {
  readonly errors: FieldError[];
  readonly budget: Budget;
  /** Rules that failed so far, pardoned ones included. */
  failures: number;
}

/**
 * A value that can never change and stands where it stood passes the rules that it once passed
 * there, at the same cost: they are not run again.
 */
function visit(node: RuleNode, place: Place, run: Run): void {
  const { value, past } = place;
  if (past === undefined || past.value !== value || !isImmutable(value)) {
    return visitAnew(node, place, run);
  }
  const known = node.passed.get(value);
  if (known !== undefined && known <= run.budget.left) {
    run.budget.left -= known;
    return undefined;
  }
  const { failures, budget } = run;
  const { left } = budget;
  visitAnew(node, place, run);
  if (run.failures === failures && budget.left >= 0) node.passed.set(value, left - budget.left);
  return undefined;
}

function visitAnew(node: RuleNode, place: Place, run: Run): void {
  const { value } = place;
  if (value === null || value === undefined) return;
  if (node.rules.length > 0) checkRules(node, place, run);
  for (const part of node.allOf) {
    if (run.budget.left < 0) return;
    // As for schemas, what an allOf finds is not pardoned by its own place.
    const judge = place.past === undefined ? place.judge : place.outerJudge;
    visit(part, { ...place, judge, keepsJudge: true }, run);
  }
  if (Array.isArray(value)) visitItems(node, value, { place, run });
  else if (isJsonObject(value)) visitFields(node, value, { place, run });
}

function checkRules(node: RuleNode, place: Place, run: Run): void {
  if (run.budget.left > 0) return runRulesOf(node, place, run);
  run.errors.push(atRoot(outOfBudget(node.structural.schema.type ?? "", run.budget)));
  return undefined;
}

function runRulesOf(node: RuleNode, { value, past, judge }: Place, run: Run): void {
  const self = lazily(node, value);
  const oldSelf = lazily(node, past?.value);
  for (const compiled of node.rules) {
    if (run.budget.left < 0) return;
    if (compiled.isTransition && oldSelf === undefined) continue;
    const error = compiled.check(() => valuesFor(compiled, self, oldSelf), run.budget);
    if (error === undefined) continue;
    run.failures++;
    if (!isPardoned(compiled, judge)) run.errors.push(atRoot(error));
  }
}

/** What did not change is pardoned, except by rules that are about change. */
function isPardoned({ usesOldSelf }: CompiledRule, judge: Judge | undefined): boolean {
  if (usesOldSelf || judge === undefined) return false;
  judge.verdict ??= isUnchanged(judge.value, judge.past);
  return judge.verdict;
}

type LazyValue = () => Value;

function valuesFor(
  { usesOldSelf, rule }: CompiledRule,
  self: LazyValue | undefined,
  oldSelf: LazyValue | undefined,
): Value[] {
  const now = self?.() ?? null;
  if (!usesOldSelf) return [now];
  if (!rule.optionalOldSelf) return [now, oldSelf?.() ?? null];
  return [now, oldSelf === undefined ? none : new Optional(oldSelf())];
}

/** Adapts a value when the first rule asks for it. Undefined for nothing, and for null. */
function lazily({ declared }: RuleNode, raw: unknown): LazyValue | undefined {
  if (raw === undefined || raw === null || declared === undefined) return undefined;
  let value: Value | undefined;
  return () => (value ??= declared.adapt(raw));
}

/** Kubernetes prints "<nil>" for a path without steps; steps above replace it. */
function atRoot(error: FieldError): FieldError {
  return error.field === "" ? { ...error, field: "<nil>" } : error;
}

interface Walk {
  readonly place: Place;
  readonly run: Run;
}

function visitItems(node: RuleNode, list: readonly unknown[], { place, run }: Walk): void {
  if (node.items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    if (run.budget.left < 0) return;
    const value = list[index];
    const past = place.past === undefined ? undefined : previousOfItem(place.past, value);
    const before = run.errors.length;
    visit(node.items, placeOf(value, past, place), run);
    if (run.errors.length > before) prefixFields(run.errors, before, `[${index}]`);
  }
}

function visitFields(
  node: RuleNode,
  object: Readonly<Record<string, unknown>>,
  { place, run }: Walk,
): void {
  const visitField = (key: string, child: RuleNode, step: string): void => {
    if (run.budget.left < 0 || !Object.hasOwn(object, key)) return;
    const value = object[key];
    const past = place.past === undefined ? undefined : previousAtKey(place.past, key);
    const before = run.errors.length;
    visit(child, placeOf(value, past, place), run);
    if (run.errors.length > before) prefixFields(run.errors, before, step);
  };
  const { additional } = node;
  if (additional !== undefined) {
    for (const key of Object.keys(object)) visitField(key, additional, `[${key}]`);
  }
  for (const [key, child] of node.properties) visitField(key, child, key);
}

/** Every rule that cannot run, with its place in the schema. */
export function ruleProblems(
  root: RuleNode,
): { readonly place: string; readonly problem: string }[] {
  const problems: { place: string; problem: string }[] = [];
  const collect = (node: RuleNode, path: string): void => {
    for (const [index, { compileError }] of node.rules.entries()) {
      if (compileError === undefined) continue;
      problems.push({ place: `${path}.x-kubernetes-validations[${index}]`, problem: compileError });
    }
    for (const [key, child] of node.properties) collect(child, `${path}.properties.${key}`);
    for (const [index, child] of node.allOf.entries()) collect(child, `${path}.allOf[${index}]`);
    if (node.items !== undefined) collect(node.items, `${path}.items`);
    if (node.additional !== undefined) collect(node.additional, `${path}.additionalProperties`);
  };
  collect(root, "schema");
  return problems;
}
