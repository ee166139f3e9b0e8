import type { ASTNode } from "@marcbachmann/cel-js";
import { CelError, noSuchOverload } from "./errors.ts";
import { charge, failAt, placeOf } from "./program.ts";
import type { Compiler, Part, Run, Scope } from "./program.ts";
import { dyn, optionalOf, typeName, type CelType } from "./types.ts";
import { CelList, isMap, none, Optional, typeNameOf, Uint, type Value } from "./values.ts";

type SelectNode = Extract<ASTNode, { op: "." | ".?" }>;
type IndexNode = Extract<ASTNode, { op: "[]" | "[?]" }>;

/** `a.b` and `a.?b`. On an optional both go on into what it holds, and give an optional. */
export function compileSelect(compiler: Compiler, node: SelectNode, scope: Scope): Part {
  const [operandNode, name] = node.args;
  const operand = compiler.compile(operandNode, scope);
  const field = fieldType(compiler, node, operand.type);
  if (node.op === ".?" || operand.type.kind === "optional") {
    return { type: optionalOf(field), run: optionalAccess(operand.run, () => name) };
  }
  const { run } = operand;
  return {
    type: field,
    run: (frame) => {
      frame.cost++;
      const value = run(frame);
      const found = isMap(value) ? value.find(name) : viaOptional(value, name);
      if (found === undefined) throw new CelError(`no such key: ${name}`);
      return found;
    },
  };
}

// Only data whose type was not known can be anything else than a map.
function viaOptional(value: Value, key: Value): Value | undefined {
  return value instanceof Optional ? findIn(value, key) : undefined;
}

/** `has(a.b)`: whether the field is there. The test itself is free of charge, as in Kubernetes. */
export function compileHas(compiler: Compiler, node: SelectNode, scope: Scope): Part {
  const [operandNode, name] = node.args;
  const operand = compiler.compile(operandNode, scope);
  fieldType(compiler, node, operand.type);
  const { run } = operand;
  return {
    type: { kind: "bool" },
    run: (frame) => {
      const value = run(frame);
      if (isMap(value)) return value.find(name) !== undefined;
      if (value instanceof Optional) return findIn(value, name).value !== undefined;
      throw noSuchOverload();
    },
  };
}

function fieldType(compiler: Compiler, node: SelectNode, type: CelType): CelType {
  const [, name] = node.args;
  const place = placeOf(node);
  switch (type.kind) {
    case "object": {
      const field = type.fields.get(name);
      if (field === undefined) throw failAt(compiler, place, `undefined field '${name}'`);
      return field.type;
    }
    case "map":
      return type.value;
    case "optional":
      return fieldType(compiler, node, type.value);
    case "dyn":
    case "param":
      return dyn;
    default:
      throw failAt(compiler, place, `type '${typeName(type)}' does not support field selection`);
  }
}

/** `a[i]` and `a[?i]`, of lists and maps. */
export function compileIndex(compiler: Compiler, node: IndexNode, scope: Scope): Part {
  const [operandNode, keyNode] = node.args;
  const operand = compiler.compile(operandNode, scope);
  const key = compiler.compile(keyNode, scope);
  const inner = operand.type.kind === "optional" ? operand.type.value : operand.type;
  const item = itemType(inner, key.type);
  if (item === undefined) {
    const applied = `(${typeName(operand.type)}, ${typeName(key.type)})`;
    const sentence = `found no matching overload for '_[_]' applied to '${applied}'`;
    throw failAt(compiler, placeOf(node), sentence);
  }
  if (node.op === "[?]" || operand.type.kind === "optional") {
    return { type: optionalOf(item), run: optionalAccess(operand.run, key.run) };
  }
  return {
    type: item,
    run: (frame) => {
      charge(frame, 1);
      return itemAt(operand.run(frame), key.run(frame));
    },
  };
}

function itemType(type: CelType, key: CelType): CelType | undefined {
  const isAny = key.kind === "dyn";
  if (type.kind === "list") return isAny || key.kind === "int" ? type.item : undefined;
  if (type.kind === "map") return isAny || key.kind === type.key.kind ? type.value : undefined;
  return type.kind === "dyn" ? dyn : undefined;
}

function itemAt(container: Value, key: Value): Value {
  if (container instanceof Optional) return findIn(container, key);
  if (container instanceof CelList) {
    const index = indexOf(key);
    if (index === undefined) throw new CelError(`unsupported index type '${typeof key}' in list`);
    if (index < 0 || index >= container.size) throw new CelError(`index out of bounds: ${index}`);
    return container.at(index);
  }
  if (!isMap(container)) throw noSuchOverload();
  const found = container.find(key);
  if (found === undefined) throw new CelError(`no such key: ${showKey(key)}`);
  return found;
}

function showKey(key: Value): string {
  if (key instanceof Uint) return String(key.value);
  return key === null || typeof key === "object" ? typeNameOf(key) : String(key);
}

function indexOf(key: Value): number | undefined {
  if (typeof key === "bigint") return Number(key);
  if (key instanceof Uint) return Number(key.value);
  return typeof key === "number" && Number.isInteger(key) ? key : undefined;
}

function optionalAccess(operand: Run, key: Run): Run {
  return (frame) => {
    charge(frame, 1);
    return findIn(operand(frame), key(frame));
  };
}

/** What is under a key, or nothing: never an error for what is missing. */
function findIn(container: Value, key: Value): Optional {
  if (container instanceof Optional) {
    return container.value === undefined ? none : findIn(container.value, key);
  }
  if (container instanceof CelList) {
    const index = indexOf(key);
    if (index === undefined || index < 0 || index >= container.size) return none;
    return new Optional(container.at(index));
  }
  if (!isMap(container)) throw noSuchOverload();
  const found = container.find(key);
  return found === undefined ? none : new Optional(found);
}
