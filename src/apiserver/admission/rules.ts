import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { FieldError } from "../../kernel/status.ts";
import { declareSchema, none, Optional, type Declared, type Value } from "../cel/index.ts";
import {
  findByKeys,
  isUnchanged,
  previousAtKey,
  previousOfItem,
  type Previous,
} from "./correlate.ts";
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
  const ratchet = { value: object, past, parent: undefined };
  visit(
    root,
    { value: object, old: previous, ratchet },
    { errors, budget: { left: objectCostMax } },
  );
  return errors;
}

/** A value on the way down: what stood there before, and what is needed to see if it changed. */
interface Place {
  readonly value: unknown;
  /** Undefined where there was nothing, or null: rules about change do not run then. */
  readonly old: unknown;
  readonly ratchet: Ratchet;
}

interface Ratchet {
  readonly value: unknown;
  readonly past: Previous | undefined;
  /** The nearest place above that has a past: if it did not change, nothing in it did. */
  readonly parent: Ratchet | undefined;
}

interface Run {
  readonly errors: FieldError[];
  readonly budget: Budget;
}

function visit(node: RuleNode, place: Place, run: Run): void {
  const { value } = place;
  if (value === null || value === undefined) return;
  if (node.rules.length > 0) checkRules(node, place, run);
  for (const part of node.allOf) {
    if (run.budget.left < 0) return;
    // As for schemas, the rules of an allOf are not ratcheted by their own place.
    visit(part, { ...place, ratchet: { ...place.ratchet, past: undefined } }, run);
  }
  if (Array.isArray(value)) visitItems(node, value, { place, run });
  else if (isJsonObject(value)) visitFields(node, value, { place, run });
}

function checkRules(node: RuleNode, { value, old, ratchet }: Place, run: Run): void {
  if (run.budget.left <= 0) {
    run.errors.push(atRoot(outOfBudget(node.structural.schema.type ?? "", run.budget)));
    return;
  }
  const self = lazily(node, value);
  const oldSelf = old === undefined ? undefined : lazily(node, old);
  for (const compiled of node.rules) {
    if (run.budget.left < 0) return;
    if (compiled.isTransition && oldSelf === undefined) continue;
    const error = compiled.check(() => valuesFor(compiled, self, oldSelf), run.budget);
    if (error !== undefined && !isPardoned(compiled, ratchet)) run.errors.push(atRoot(error));
  }
}

/** What did not change is pardoned, except by rules that are about change. */
function isPardoned({ usesOldSelf }: CompiledRule, ratchet: Ratchet): boolean {
  return !usesOldSelf && isRatcheted(ratchet);
}

type LazyValue = () => Value;

function valuesFor(
  { usesOldSelf, rule }: CompiledRule,
  self: LazyValue,
  oldSelf: LazyValue | undefined,
): Value[] {
  if (!usesOldSelf) return [self()];
  if (!rule.optionalOldSelf) return [self(), oldSelf?.() ?? null];
  return [self(), oldSelf === undefined ? none : new Optional(oldSelf())];
}

function lazily({ declared }: RuleNode, raw: unknown): LazyValue {
  let value: Value | undefined;
  return () => (value ??= declared === undefined ? null : declared.adapt(raw));
}

/** Kubernetes prints "<nil>" for a path without steps; steps above replace it. */
function atRoot(error: FieldError): FieldError {
  return error.field === "" ? { ...error, field: "<nil>" } : error;
}

function isRatcheted({ value, past, parent }: Ratchet): boolean {
  if (past !== undefined) return isUnchanged(value, past);
  return parent?.past !== undefined && isUnchanged(parent.value, parent.past);
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
    const old = place.old === undefined ? undefined : findByKeys(node.structural, place.old, value);
    const ratchet = below(place.ratchet, value, (past) => previousOfItem(past, value));
    const before = run.errors.length;
    visit(node.items, { value, old, ratchet }, run);
    if (run.errors.length > before) prefixFields(run.errors, before, `[${index}]`);
  }
}

function visitFields(
  node: RuleNode,
  object: Readonly<Record<string, unknown>>,
  { place, run }: Walk,
): void {
  const old = isJsonObject(place.old) ? place.old : undefined;
  const visitField = (key: string, child: RuleNode, step: string): void => {
    if (run.budget.left < 0 || !Object.hasOwn(object, key)) return;
    const value = object[key];
    const ratchet = below(place.ratchet, value, (past) => previousAtKey(past, key));
    const before = run.errors.length;
    visit(child, { value, old: old?.[key] ?? undefined, ratchet }, run);
    if (run.errors.length > before) prefixFields(run.errors, before, step);
  };
  const { additional } = node;
  if (additional !== undefined) {
    for (const key of Object.keys(object)) visitField(key, additional, `[${key}]`);
  }
  for (const [key, child] of node.properties) visitField(key, child, key);
}

function below(
  ratchet: Ratchet,
  value: unknown,
  follow: (past: Previous) => Previous | undefined,
): Ratchet {
  if (ratchet.past === undefined) return { value, past: undefined, parent: ratchet.parent };
  return { value, past: follow(ratchet.past), parent: ratchet };
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
