import type { ASTNode } from "@marcbachmann/cel-js";
import { CelError, noSuchOverload } from "./errors.ts";
import { attempt, isCondition } from "./logic.ts";
import { LiteralMap } from "./maps.ts";
import { charge, failAt, placeOf, withVariable } from "./program.ts";
import type { Compiler, Frame, Part, Run, Scope } from "./program.ts";
import { bool, dyn, int, listOf, mapOf, optionalOf, typeName, type CelType } from "./types.ts";
import { CelList, isMap, none, Optional, type Value } from "./values.ts";

type MemberCall = Extract<ASTNode, { op: "rcall" }>;

/** A loop over a list or map: where its items come from and where they go. */
interface Loop {
  readonly items: Run;
  /** The slots of the one or two variables. */
  readonly first: number;
  readonly second: number | undefined;
  readonly scope: Scope;
  /** The type of the first variable, which is also what `filter` keeps. */
  readonly itemType: CelType;
}

type Expand = (compiler: Compiler, node: MemberCall, loop: Loop) => Part;

const oneVariable: ReadonlyMap<string, Expand> = new Map<string, Expand>([
  ["all/2", quantifier(false)],
  ["exists/2", quantifier(true)],
  ["exists_one/2", existsOne],
  ["existsOne/2", existsOne],
  ["map/2", transformList],
  ["map/3", transformList],
  ["filter/2", filter],
]);

const twoVariables: ReadonlyMap<string, Expand> = new Map<string, Expand>([
  ["all/3", quantifier(false)],
  ["exists/3", quantifier(true)],
  ["existsOne/3", existsOne],
  ["exists_one/3", existsOne],
  ["transformList/3", transformList],
  ["transformList/4", transformList],
  ["transformMap/3", transformMap],
  ["transformMap/4", transformMap],
]);

/** The macros that loop, and those of optionals. Undefined when the call is no macro. */
export function compileMacro(compiler: Compiler, node: MemberCall, scope: Scope): Part | undefined {
  const [name, receiverNode, args] = node.args;
  if ((name === "optMap" || name === "optFlatMap") && args.length === 2) {
    return compileOptionalMap(compiler, node, scope);
  }
  const key = `${name}/${args.length}`;
  const one = oneVariable.get(key);
  const expand = one ?? twoVariables.get(key);
  if (expand === undefined) return undefined;
  const receiver = compiler.compile(receiverNode, scope);
  return expand(compiler, node, loopOver(compiler, { node, receiver, scope, count: one ? 1 : 2 }));
}

function loopOver(
  compiler: Compiler,
  from: { node: MemberCall; receiver: Part; scope: Scope; count: 1 | 2 },
): Loop {
  const { node, receiver, scope, count } = from;
  const [keyType, valueType] = rangeTypes(compiler, node, receiver.type);
  const names = node.args[2].slice(0, count).map((arg) => variableName(compiler, arg));
  const [first = "", second] = names;
  const firstType = count === 1 && receiver.type.kind === "list" ? valueType : keyType;
  const inner = withVariable(scope, first, firstType);
  return {
    items: receiver.run,
    first: scope.slots,
    second: second === undefined ? undefined : inner.slots,
    scope: second === undefined ? inner : withVariable(inner, second, valueType),
    itemType: firstType,
  };
}

/** The types of index or key, and of item or value. */
function rangeTypes(compiler: Compiler, node: MemberCall, type: CelType): [CelType, CelType] {
  if (type.kind === "list") return [int, type.item];
  if (type.kind === "map") return [type.key, type.value];
  if (type.kind === "dyn") return [dyn, dyn];
  const sentence = `expression of type '${typeName(type)}' cannot be range of a comprehension (must be list, map, or dynamic)`;
  throw failAt(compiler, placeOf(node.args[1]), sentence);
}

function variableName(compiler: Compiler, node: ASTNode): string {
  if (node.op === "id") return node.args;
  throw failAt(compiler, placeOf(node), "argument must be a simple name");
}

/** Calls back for every item with the variables set, until the callback gives false. */
function iterate(frame: Frame, loop: Loop, visit: () => boolean): void {
  const items = loop.items(frame);
  const { slots } = frame;
  if (items instanceof CelList) {
    for (let i = 0; i < items.size; i++) {
      if (loop.second === undefined) slots[loop.first] = items.at(i);
      else {
        slots[loop.first] = BigInt(i);
        slots[loop.second] = items.at(i);
      }
      if (!visit()) return;
    }
    return;
  }
  if (!isMap(items)) throw noSuchOverload();
  for (const key of items.keys()) {
    slots[loop.first] = key;
    if (loop.second !== undefined) slots[loop.second] = items.find(key) ?? null;
    if (!visit()) return;
  }
}

/** The last arguments of the macro, compiled where its variables are visible. */
function bodies(compiler: Compiler, node: MemberCall, loop: Loop): Part[] {
  const skipped = loop.second === undefined ? 1 : 2;
  return node.args[2].slice(skipped).map((arg) => compiler.compile(arg, loop.scope));
}

function condition(compiler: Compiler, node: MemberCall, part: Part | undefined): Run {
  if (part !== undefined && isCondition(part.type)) return part.run;
  const given = part === undefined ? "" : typeName(part.type);
  const body = node.args[2].at(-1) ?? node;
  throw failAt(compiler, placeOf(body), `expected type 'bool' but found '${given}'`);
}

/** `all` and `exists`: an item that decides makes errors of the others harmless. */
function quantifier(decides: boolean): Expand {
  return (compiler, node, loop) => {
    const test = condition(compiler, node, bodies(compiler, node, loop)[0]);
    const run: Run = (frame) => {
      let failure: CelError | undefined;
      let isDecided = false;
      charge(frame, 1);
      iterate(frame, loop, () => {
        charge(frame, decides ? 4 : 3);
        const outcome = attempt(test, frame);
        if (outcome instanceof CelError) failure ??= outcome;
        isDecided = outcome === decides;
        return !isDecided;
      });
      if (!isDecided && failure !== undefined) throw failure;
      return isDecided ? decides : !decides;
    };
    return { type: bool, run };
  };
}

function truth(test: Run, frame: Frame): boolean {
  const outcome = test(frame);
  if (typeof outcome === "boolean") return outcome;
  throw noSuchOverload();
}

function existsOne(compiler: Compiler, node: MemberCall, loop: Loop): Part {
  const test = condition(compiler, node, bodies(compiler, node, loop)[0]);
  const run: Run = (frame) => {
    let count = 0;
    charge(frame, 2);
    iterate(frame, loop, () => {
      const isFound = truth(test, frame);
      if (isFound) count++;
      charge(frame, isFound ? 2 : 0);
      return true;
    });
    return count === 1;
  };
  return { type: bool, run };
}

function filter(compiler: Compiler, node: MemberCall, loop: Loop): Part {
  const test = condition(compiler, node, bodies(compiler, node, loop)[0]);
  const run: Run = (frame) => {
    const kept: Value[] = [];
    charge(frame, 1);
    iterate(frame, loop, () => {
      const item = frame.slots[loop.first] ?? null;
      const isKept = truth(test, frame);
      if (isKept) kept.push(item);
      charge(frame, isKept ? 13 : 0);
      return true;
    });
    return CelList.of(kept);
  };
  return { type: listOf(loop.itemType), run };
}

/** `map` and `transformList`, with or without a condition before the transformation. */
function transformList(compiler: Compiler, node: MemberCall, loop: Loop): Part {
  const parts = bodies(compiler, node, loop);
  const test = parts.length === 2 ? condition(compiler, node, parts[0]) : undefined;
  const transform = parts.at(-1) ?? { type: dyn, run: () => null };
  const run: Run = (frame) => {
    const made: Value[] = [];
    charge(frame, 1);
    iterate(frame, loop, () => {
      const isWanted = test === undefined || truth(test, frame);
      if (isWanted) made.push(transform.run(frame));
      charge(frame, isWanted ? 12 : 0);
      return true;
    });
    return CelList.of(made);
  };
  return { type: listOf(transform.type), run };
}

function transformMap(compiler: Compiler, node: MemberCall, loop: Loop): Part {
  const parts = bodies(compiler, node, loop);
  const test = parts.length === 2 ? condition(compiler, node, parts[0]) : undefined;
  const transform = parts.at(-1) ?? { type: dyn, run: () => null };
  const run: Run = (frame) => {
    const made: (readonly [Value, Value])[] = [];
    charge(frame, 1);
    iterate(frame, loop, () => {
      const key = frame.slots[loop.first] ?? null;
      const isWanted = test === undefined || truth(test, frame);
      if (isWanted) made.push([key, transform.run(frame)]);
      charge(frame, isWanted ? 3 : 0);
      return true;
    });
    return new LiteralMap(made);
  };
  return { type: mapOf(loop.itemType, transform.type), run };
}

/** `optMap` wraps what its body gives; the body of `optFlatMap` gives an optional itself. */
function compileOptionalMap(compiler: Compiler, node: MemberCall, scope: Scope): Part {
  const [name, receiverNode, args] = node.args;
  const [variable, bodyNode] = args;
  const receiver = compiler.compile(receiverNode, scope);
  if (variable === undefined || bodyNode === undefined) throw noSuchOverload();
  const inner = receiver.type.kind === "optional" ? receiver.type.value : dyn;
  const slot = scope.slots;
  const inside = withVariable(scope, variableName(compiler, variable), inner);
  const body = compiler.compile(bodyNode, inside);
  const run: Run = (frame) => {
    const value = receiver.run(frame);
    if (!(value instanceof Optional)) throw noSuchOverload();
    if (value.value === undefined) return none;
    frame.slots[slot] = value.value;
    const result = body.run(frame);
    return name === "optMap" ? new Optional(result) : result;
  };
  return { type: name === "optMap" ? optionalOf(body.type) : body.type, run };
}
