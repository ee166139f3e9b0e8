import type { ASTNode } from "@marcbachmann/cel-js";
import { equals } from "./equality.ts";
import { CelError } from "./errors.ts";
import { smallerCost } from "./library/operators.ts";
import { dispatch, type Overload } from "./overload.ts";
import { charge, constantPart, failAt, placeOf } from "./program.ts";
import type { Compiler, Part, Run, Scope } from "./program.ts";
import { bool, isDynamic, typeName, unify, type CelType } from "./types.ts";
import { CelList, Opaque, type Value } from "./values.ts";

/** A call by name: what is called, on what, and where a complaint about it points. */
export interface Call {
  readonly name: string;
  readonly isMember: boolean;
  readonly args: readonly Part[];
  readonly place: { readonly from: number; readonly symbol?: string };
}

/** Chooses the overload when compiling where the types allow it, otherwise on every call. */
export function compileCall(compiler: Compiler, call: Call): Part {
  const argTypes = call.args.map((arg) => arg.type);
  const found = compiler.functions.resolve(call.name, call.isMember, argTypes);
  if (found === undefined) throw failAt(compiler, call.place, complaint(compiler, call));
  const [only] = found.overloads;
  const isStatic = !argTypes.some(isDynamic) || found.overloads.every(takesAnything);
  const known = isStatic && only !== undefined ? compileKnown(call, only, found.result) : undefined;
  if (known !== undefined) return known;
  const runs = call.args.map((arg) => arg.run);
  const run =
    isStatic && only !== undefined ? runOverload(only, runs) : runDynamic(found.overloads, runs);
  return { type: found.result, run };
}

const conversions = new Set(
  "bool int uint double string bytes type dyn timestamp duration".split(" "),
);

/**
 * A call whose arguments are all known is made once: functions have no effects. Kubernetes does so
 * for conversions, which then cost nothing; for the others the price stays, only the work goes.
 */
function compileKnown(call: Call, { handler, cost }: Overload, type: CelType): Part | undefined {
  const args = call.args.flatMap(({ constant }) => (constant === undefined ? [] : [constant]));
  if (args.length === 0 || args.length < call.args.length) return undefined;
  try {
    const value = handler(...args);
    if (conversions.has(call.name)) return constantPart(type, value);
    const price = cost === undefined ? 1 : cost(args);
    const run: Run = (frame) => {
      charge(frame, price);
      return value;
    };
    return { type, run };
  } catch (error) {
    // The failure belongs to the evaluation, where `||` may still make it harmless.
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

function takesAnything(overload: Overload): boolean {
  return overload.params.every((param) => param.kind === "dyn" || param.kind === "param");
}

function complaint({ functions }: Compiler, { name, isMember, args }: Call): string {
  if (!functions.has(name)) return `undeclared reference to '${name}' (in container '')`;
  const [receiver, ...others] = args.map((arg) => typeName(arg.type));
  const applied = isMember
    ? `${receiver ?? ""}.(${others.join(", ")})`
    : `(${args.map((arg) => typeName(arg.type)).join(", ")})`;
  return `found no matching overload for '${name}' applied to '${applied}'`;
}

// One, two or three arguments without an array in between: rules are made of little else.
function runOverload({ handler, cost }: Overload, runs: readonly Run[]): Run {
  const [first, second, third] = runs;
  if (cost !== undefined || runs.length > 3 || first === undefined) {
    return (frame) => {
      const args = runs.map((run) => run(frame));
      charge(frame, cost === undefined ? 1 : cost(args));
      return handler(...args);
    };
  }
  if (second === undefined) {
    return (frame) => {
      charge(frame, 1);
      return handler(first(frame));
    };
  }
  if (third === undefined) {
    return (frame) => {
      charge(frame, 1);
      return handler(first(frame), second(frame));
    };
  }
  return (frame) => {
    charge(frame, 1);
    return handler(first(frame), second(frame), third(frame));
  };
}

function runDynamic(overloads: readonly Overload[], runs: readonly Run[]): Run {
  return (frame) => {
    const args = runs.map((run) => run(frame));
    const { handler, cost } = dispatch(overloads, args);
    charge(frame, cost === undefined ? 1 : cost(args));
    return handler(...args);
  };
}

const operatorNames: Readonly<Record<string, string>> = { in: "@in" };

/** `a + b` and the like: functions with operator names, and equality. */
export function compileBinary(
  compiler: Compiler,
  node: Extract<
    ASTNode,
    { op: "+" | "-" | "*" | "/" | "%" | "<" | "<=" | ">" | ">=" | "in" | "==" | "!=" }
  >,
  scope: Scope,
): Part {
  const [leftNode, rightNode] = node.args;
  const left = compiler.compile(leftNode, scope);
  const right = compiler.compile(rightNode, scope);
  const place = placeOf(node);
  if (node.op === "==" || node.op === "!=") {
    if (unify(left.type, right.type) === undefined) {
      const applied = `(${typeName(left.type)}, ${typeName(right.type)})`;
      const sentence = `found no matching overload for '_${node.op}_' applied to '${applied}'`;
      throw failAt(compiler, place, sentence);
    }
    return { type: bool, run: runEquality(left, right, node.op === "==") };
  }
  if (node.op === "in" && right.constant instanceof CelList) {
    const membership = compileMembership(left, right.constant);
    if (membership !== undefined) return membership;
  }
  const name = operatorNames[node.op] ?? `_${node.op}_`;
  return compileCall(compiler, { name, isMember: false, args: [left, right], place });
}

/** `x in ["a", "b"]`: a set, made once. Free of charge, as in Kubernetes. */
function compileMembership(left: Part, list: CelList): Part | undefined {
  const items = list.values();
  // Other values are equal without being the same.
  if (left.type.kind !== "string" || !items.every((item) => typeof item === "string")) {
    return undefined;
  }
  const members = new Set<Value>(items);
  return { type: bool, run: (frame) => members.has(left.run(frame)) };
}

function runEquality(left: Part, right: Part, expected: boolean): Run {
  const isScalar = isScalarType(left.type) || isScalarType(right.type);
  return (frame) => {
    const one = left.run(frame);
    const other = right.run(frame);
    charge(frame, isScalar ? 1 : equalityCost(one, other));
    return equals(one, other) === expected;
  };
}

function isScalarType({ kind }: CelType): boolean {
  return kind === "int" || kind === "bool" || kind === "double" || kind === "type";
}

function equalityCost(left: Value, right: Value): number {
  return left instanceof Opaque ? 1 : smallerCost([left, right]);
}
