import type { ASTNode } from "@marcbachmann/cel-js";
import { LiteralMap } from "./maps.ts";
import { charge, constantPart, failAt, placeOf } from "./program.ts";
import type { Compiler, Part, Scope } from "./program.ts";
import * as types from "./types.ts";
import type { CelType } from "./types.ts";
import { CelList, Uint, type Value } from "./values.ts";

type Literal = Extract<ASTNode, { op: "value" }>["args"];

/** A number, text, truth or nothing, as written. */
export function compileLiteral(compiler: Compiler, node: ASTNode, literal: Literal): Part {
  if (typeof literal === "bigint" && literal >= 2n ** 63n) {
    throw failAt(compiler, { from: node.start }, "invalid int literal");
  }
  const value = literalValue(literal);
  return constantPart(literalType(value), value);
}

function literalValue(literal: Literal): LiteralValue {
  if (typeof literal !== "object" || literal === null) return literal;
  // The parser's class of unsigned numbers, `1u`, is the only other object.
  return literal instanceof Uint8Array ? literal : new Uint(literal.valueOf());
}

type LiteralValue = string | number | bigint | boolean | null | Uint8Array | Uint;

function literalType(value: LiteralValue): CelType {
  switch (typeof value) {
    case "bigint":
      return types.int;
    case "number":
      return types.double;
    case "string":
      return types.string;
    case "boolean":
      return types.bool;
    default:
      if (value === null) return types.nullType;
      return value instanceof Uint ? types.uint : types.bytes;
  }
}

interface Surroundings {
  readonly scope: Scope;
  /** Items may differ in type, as the arguments of `format` do. */
  readonly allowsMixed: boolean;
}

/** `[a, b]`. */
export function compileList(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "list" }>,
  around: Surroundings,
): Part {
  const items = node.args.map((item) => compileItem(compiler, item, around));
  const item = around.allowsMixed ? types.dyn : commonType(compiler, node.args, items);
  const type = types.listOf(item);
  const constants = constantsOf(items);
  if (constants !== undefined) return constantPart(type, CelList.of(constants));
  const runs = items.map(({ run }) => run);
  return {
    type,
    run: (frame) => {
      charge(frame, 10);
      return CelList.of(runs.map((run) => run(frame)));
    },
  };
}

/** `{a: b}`. */
export function compileMap(
  compiler: Compiler,
  node: Extract<ASTNode, { op: "map" }>,
  around: Surroundings,
): Part {
  const keyNodes = node.args.map(([key]) => key);
  const valueNodes = node.args.map(([, value]) => value);
  const keys = keyNodes.map((key) => compileItem(compiler, key, around));
  const values = valueNodes.map((value) => compileItem(compiler, value, around));
  const typeOf = (nodes: readonly ASTNode[], parts: readonly Part[]): CelType => {
    return around.allowsMixed ? types.dyn : commonType(compiler, nodes, parts);
  };
  const type = types.mapOf(typeOf(keyNodes, keys), typeOf(valueNodes, values));
  const [constantKeys, constantValues] = [constantsOf(keys), constantsOf(values)];
  if (constantKeys !== undefined && constantValues !== undefined) {
    return constantPart(type, toMap(constantKeys, constantValues));
  }
  return {
    type,
    run: (frame) => {
      charge(frame, 30);
      const evaluate = ({ run }: Part): Value => run(frame);
      return toMap(keys.map(evaluate), values.map(evaluate));
    },
  };
}

function compileItem(compiler: Compiler, node: ASTNode, around: Surroundings): Part {
  if (around.allowsMixed && node.op === "list") return compileList(compiler, node, around);
  if (around.allowsMixed && node.op === "map") return compileMap(compiler, node, around);
  return compiler.compile(node, around.scope);
}

function constantsOf(parts: readonly Part[]): Value[] | undefined {
  const constants = parts.flatMap(({ constant }) => (constant === undefined ? [] : [constant]));
  return constants.length === parts.length ? constants : undefined;
}

function toMap(keys: readonly Value[], values: readonly Value[]): LiteralMap {
  return new LiteralMap(keys.map((key, index) => [key, values[index] ?? null]));
}

/** All items of a literal have one type, as Kubernetes asks. */
function commonType(
  compiler: Compiler,
  nodes: readonly ASTNode[],
  parts: readonly Part[],
): CelType {
  let common: CelType | undefined;
  for (const [index, part] of parts.entries()) {
    const joined = common === undefined ? part.type : types.unify(common, part.type);
    if (joined === undefined) {
      const expected = types.typeName(common ?? types.dyn);
      const sentence = `expected type '${expected}' but found '${types.typeName(part.type)}'`;
      const node = nodes[index];
      throw failAt(compiler, node === undefined ? { from: 0 } : placeOf(node), sentence);
    }
    common = joined;
  }
  return common ?? types.dyn;
}
