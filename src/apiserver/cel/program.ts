import type { ASTNode } from "@marcbachmann/cel-js";
import { CelCompileError, CelCostError } from "./errors.ts";
import type { Functions } from "./overload.ts";
import type { CelType } from "./types.ts";
import type { Value } from "./values.ts";

/** One evaluation: the values of variables, and what it has cost so far. */
export interface Frame {
  readonly slots: Value[];
  cost: number;
  readonly costMax: number;
}

export type Run = (frame: Frame) => Value;

/** A checked part of an expression: its type, and the closure that evaluates it. */
export interface Part {
  readonly type: CelType;
  readonly run: Run;
  /** The value, where it is known without running: literals, and lists and maps of them. */
  readonly constant?: Value;
}

/** A part whose value is known. It costs nothing, as in Kubernetes. */
export function constantPart(type: CelType, constant: Value): Part {
  return { type, constant, run: () => constant };
}

/** Names that are visible at a place: variables, each with the slot that holds its value. */
export interface Scope {
  readonly variables: ReadonlyMap<string, { readonly slot: number; readonly type: CelType }>;
  readonly slots: number;
}

export function withVariable(scope: Scope, name: string, type: CelType): Scope {
  const variables = new Map(scope.variables).set(name, { slot: scope.slots, type });
  return { variables, slots: scope.slots + 1 };
}

/** What the parts of the compiler share. */
export interface Compiler {
  readonly source: string;
  readonly functions: Functions;
  compile(node: ASTNode, scope: Scope): Part;
  /** Variables that the expression refers to. */
  readonly used: Set<string>;
}

/** A compile error at the operator or parenthesis that follows `from`, where cel-go points. */
export function failAt(
  { source }: Compiler,
  place: { readonly from: number; readonly symbol?: string },
  sentence: string,
): CelCompileError {
  const { from, symbol } = place;
  const found = symbol === undefined ? from : source.indexOf(symbol, from);
  return new CelCompileError(source, found < 0 ? from : found, sentence);
}

/** Where cel-go sees a node: at its operator, dot or parenthesis, not at its first character. */
export function placeOf(node: ASTNode): { from: number; symbol?: string } {
  switch (node.op) {
    case "value":
    case "id":
    case "list":
    case "map":
    case "!_":
    case "-_":
      return { from: node.start };
    case "call":
      return { from: node.start, symbol: "(" };
    case "rcall":
      return { from: node.args[1].end, symbol: "(" };
    case ".?":
    case ".":
      return { from: node.args[0].end, symbol: "." };
    case "[]":
    case "[?]":
      return { from: node.args[0].end, symbol: "[" };
    case "?:":
      return { from: node.args[0].end, symbol: "?" };
    default:
      return { from: node.args[0].end, symbol: node.op };
  }
}

/** Adds to the cost and stops an evaluation that did too much. */
export function charge(frame: Frame, cost: number): void {
  frame.cost += cost;
  if (frame.cost > frame.costMax) throw new CelCostError();
}
