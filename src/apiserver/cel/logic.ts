import type { ASTNode } from "@marcbachmann/cel-js";
import { CelError, noSuchOverload } from "./errors.ts";
import { failAt, placeOf } from "./program.ts";
import type { Compiler, Frame, Part, Run, Scope } from "./program.ts";
import { bool, typeName, unify, type CelType } from "./types.ts";
import type { Value } from "./values.ts";

/**
 * `&&` and `||`. The order of the two sides does not matter to the result: one side that decides
 * makes an error of the other harmless.
 */
export function compileLogic(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "&&" | "||" }>,
  scope: Scope,
): Part {
  const [leftNode, rightNode] = node.args;
  const left = compiler.compile(leftNode, scope);
  const right = compiler.compile(rightNode, scope);
  if (!isCondition(left.type) || !isCondition(right.type)) {
    const applied = `(${typeName(left.type)}, ${typeName(right.type)})`;
    const sentence = `found no matching overload for '_${node.op}_' applied to '${applied}'`;
    throw failAt(compiler, placeOf(node), sentence);
  }
  const decides = node.op === "||";
  return { type: bool, run: decide(left.run, right.run, decides) };
}

export function isCondition(type: CelType): boolean {
  return type.kind === "bool" || type.kind === "dyn";
}

function decide(left: Run, right: Run, decides: boolean): Run {
  return (frame) => {
    const first = attempt(left, frame);
    if (first === decides) return decides;
    const second = attempt(right, frame);
    if (second === decides) return decides;
    if (first instanceof CelError) throw first;
    if (second instanceof CelError) throw second;
    return !decides;
  };
}

/** The truth of a side, or its error. Running out of budget is not caught: it ends everything. */
export function attempt(run: Run, frame: Frame): boolean | CelError {
  try {
    const value = run(frame);
    return typeof value === "boolean" ? value : noSuchOverload();
  } catch (error) {
    if (error instanceof CelError) return error;
    throw error;
  }
}

/** `a ? b : c`. */
export function compileTernary(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "?:" }>,
  scope: Scope,
): Part {
  const [condition, left, right] = node.args.map((part) => compiler.compile(part, scope));
  if (condition === undefined || left === undefined || right === undefined) throw noSuchOverload();
  const type = unify(left.type, right.type);
  if (type === undefined || !isCondition(condition.type)) {
    const applied = [condition, left, right].map((part) => typeName(part.type)).join(", ");
    const sentence = `found no matching overload for '_?_:_' applied to '(${applied})'`;
    throw failAt(compiler, placeOf(node), sentence);
  }
  return {
    type,
    run: (frame): Value => {
      const test = condition.run(frame);
      if (test === true) return left.run(frame);
      if (test === false) return right.run(frame);
      throw noSuchOverload();
    },
  };
}
