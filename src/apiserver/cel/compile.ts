import { Environment, ParseError, type ASTNode } from "@marcbachmann/cel-js";
import { compileHas, compileIndex, compileSelect } from "./access.ts";
import { compileBinary, compileCall } from "./calls.ts";
import { CelCompileError, CelCostError, CelError } from "./errors.ts";
import { kubernetesLibrary } from "./library/kubernetes.ts";
import { listLibrary } from "./library/lists.ts";
import { operatorLibrary } from "./library/operators.ts";
import { optionalLibrary } from "./library/optionals.ts";
import { standardLibrary } from "./library/standard.ts";
import { stringLibrary } from "./library/strings.ts";
import { timeLibrary } from "./library/times.ts";
import { checkLiteralArgument } from "./literal-arguments.ts";
import { compileList, compileLiteral, compileMap } from "./literals.ts";
import { compileLogic, compileTernary } from "./logic.ts";
import { compileMacro } from "./macros.ts";
import { Functions } from "./overload.ts";
import { constantPart, failAt, placeOf } from "./program.ts";
import type { Compiler, Frame, Part, Scope } from "./program.ts";
import * as types from "./types.ts";
import type { CelType } from "./types.ts";
import { TypeValue, type Value } from "./values.ts";

/** A compiled expression. It may be run any number of times. */
export interface Program {
  readonly type: CelType;
  /** The declared variables that the expression reads. */
  readonly uses: ReadonlySet<string>;
  /** Evaluates. Throws CelError for an expression without value, CelCostError beyond `costMax`. */
  run(values: readonly Value[], costMax: number): { readonly value: Value; readonly cost: number };
}

/** A variable that expressions may read. Its value is given to `run` in the same order. */
export interface Variable {
  readonly name: string;
  readonly type: CelType;
}

const functions = new Functions([
  ...standardLibrary,
  ...operatorLibrary,
  ...stringLibrary,
  ...listLibrary,
  ...timeLibrary,
  ...optionalLibrary,
  ...kubernetesLibrary,
]);

// The library parses; checking and evaluation are ours, because Kubernetes types rules by their
// schema and charges for every step, for which the library's evaluator has no hooks.
const parser = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true });

/** Compiles an expression. Throws CelCompileError, with the place, when it is not well formed. */
export function compileExpression(source: string, variables: readonly Variable[]): Program {
  const declared = new Map(variables.map(({ name, type }, slot) => [name, { slot, type }]));
  const compiler: Compiler = {
    source,
    functions,
    used: new Set(),
    compile: (node, scope) => compileNode(compiler, node, scope),
  };
  const scope = { variables: declared, slots: variables.length };
  const part = compiler.compile(parse(source), scope);
  return {
    type: part.type,
    uses: compiler.used,
    run: (values, costMax) => run(part, values, costMax),
  };
}

function run(
  part: Part,
  values: readonly Value[],
  costMax: number,
): { value: Value; cost: number } {
  const frame: Frame = { slots: [...values], cost: 0, costMax };
  try {
    return { value: part.run(frame), cost: frame.cost };
  } catch (error) {
    // A rule written for other data must not take the server down: what it did is its own error.
    if (error instanceof CelError || error instanceof CelCostError) throw error;
    if (error instanceof RangeError) throw new CelError(error.message);
    throw error;
  }
}

function parse(source: string): ASTNode {
  try {
    return parser.parse(source).ast;
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new CelCompileError(source, error.range?.start ?? 0, `Syntax error: ${error.summary}`);
  }
}

function compileNode(compiler: Compiler, node: ASTNode, scope: Scope): Part {
  switch (node.op) {
    case "value":
      return compileLiteral(compiler, node, node.args);
    case "id":
      return compileIdentifier(compiler, node, scope);
    case ".":
    case ".?":
      return compileQualified(node, scope) ?? compileSelect(compiler, node, scope);
    case "[]":
    case "[?]":
      return compileIndex(compiler, node, scope);
    case "call":
      return compileFunction(compiler, node, scope);
    case "rcall":
      return compileMethod(compiler, node, scope);
    case "list":
      return compileList(compiler, node, { scope, allowsMixed: false });
    case "map":
      return compileMap(compiler, node, { scope, allowsMixed: false });
    case "?:":
      return compileTernary(compiler, node, scope);
    case "||":
    case "&&":
      return compileLogic(compiler, node, scope);
    case "!_":
    case "-_":
      return compileUnary(compiler, node, scope);
    default:
      return compileBinary(compiler, node, scope);
  }
}

const typeNames = new Set(
  "bool int uint double string bytes list map null_type type optional_type".split(" "),
);
const qualifiedTypes = new Set([
  "google.protobuf.Timestamp",
  "google.protobuf.Duration",
  "net.IP",
  "net.CIDR",
  "kubernetes.Quantity",
  "kubernetes.URL",
]);

function compileIdentifier(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "id" }>,
  { variables }: Scope,
): Part {
  const name = node.args;
  const variable = variables.get(name);
  if (variable !== undefined) {
    const { slot, type } = variable;
    compiler.used.add(name);
    return {
      type,
      run: (frame) => {
        frame.cost++;
        return frame.slots[slot] ?? null;
      },
    };
  }
  if (!typeNames.has(name)) {
    const sentence = `undeclared reference to '${name}' (in container '')`;
    throw failAt(compiler, { from: node.start }, sentence);
  }
  return constantPart(types.typeType, new TypeValue(name));
}

/** "google.protobuf.Timestamp" and the like, where no variable stands in front. */
function compileQualified(node: ASTNode, { variables }: Scope): Part | undefined {
  const name = qualifiedName(node);
  if (name === undefined || !qualifiedTypes.has(name)) return undefined;
  if (variables.has(name.split(".")[0] ?? "")) return undefined;
  return constantPart(types.typeType, new TypeValue(name));
}

function qualifiedName(node: ASTNode): string | undefined {
  if (node.op === "id") return node.args;
  if (node.op !== ".") return undefined;
  const before = qualifiedName(node.args[0]);
  return before === undefined ? undefined : `${before}.${node.args[1]}`;
}

function compileFunction(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "call" }>,
  scope: Scope,
): Part {
  const [name, argNodes] = node.args;
  const place = placeOf(node);
  if (name === "has") {
    const [field] = argNodes;
    if (argNodes.length === 1 && field?.op === ".") return compileHas(compiler, field, scope);
    throw failAt(compiler, place, "invalid argument to has() macro");
  }
  const args = argNodes.map((arg) => compiler.compile(arg, scope));
  checkLiteralArgument(compiler, name, argNodes);
  return compileCall(compiler, { name, isMember: false, args, place });
}

function compileMethod(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "rcall" }>,
  scope: Scope,
): Part {
  const [name, receiver, argNodes] = node.args;
  const place = placeOf(node);
  const compileArgs = (): Part[] => argNodes.map((arg) => compiler.compile(arg, scope));
  // `sets.contains(a, b)`: a namespace, unless a variable has that name.
  if (receiver.op === "id" && !scope.variables.has(receiver.args)) {
    const qualified = `${receiver.args}.${name}`;
    if (functions.has(qualified)) {
      return compileCall(compiler, {
        name: qualified,
        isMember: false,
        args: compileArgs(),
        place,
      });
    }
  }
  const macro = compileMacro(compiler, node, scope);
  if (macro !== undefined) return macro;
  const self = compiler.compile(receiver, scope);
  const [only] = argNodes;
  const args =
    name === "format" && argNodes.length === 1 && only?.op === "list"
      ? [compileList(compiler, only, { scope, allowsMixed: true })]
      : compileArgs();
  checkLiteralArgument(compiler, name, argNodes);
  return compileCall(compiler, { name, isMember: true, args: [self, ...args], place });
}

function compileUnary(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "!_" | "-_" }>,
  scope: Scope,
): Part {
  const operand = node.args;
  // The smallest int has no positive twin, so the sign belongs to the literal.
  if (node.op === "-_" && operand.op === "value" && typeof operand.args === "bigint") {
    const value = -operand.args;
    if (value < -(2n ** 63n)) throw failAt(compiler, { from: node.start }, "invalid int literal");
    return constantPart(types.int, value);
  }
  const args = [compiler.compile(operand, scope)];
  return compileCall(compiler, { name: node.op, isMember: false, args, place: placeOf(node) });
}
