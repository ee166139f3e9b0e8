import { noSuchOverload } from "./errors.ts";
import * as types from "./types.ts";
import type { Bindings, CelType } from "./types.ts";
import { CelList, isMap, Opaque, Optional, type Value } from "./values.ts";
import { typeNameOf } from "./values.ts";

/** What runs a function. The arguments have the types of the signature, the receiver first. */
export type Handler = (...args: Value[]) => Value;

/**
 * What a call costs, in Kubernetes' units; without one it costs 1. It is charged before the call
 * runs, so that what is too much is never done.
 */
export type Cost = (args: readonly Value[]) => number;

/** One line of a library: `string.contains(string): bool`, how it runs and what it costs. */
export type Definition = readonly [signature: string, handler: Handler, cost?: Cost];

export interface Overload {
  readonly name: string;
  readonly params: readonly CelType[];
  readonly result: CelType;
  readonly handler: Handler;
  readonly cost: Cost | undefined;
}

/** The functions that expressions may call. */
export class Functions {
  private readonly byKey = new Map<string, Overload[]>();
  private readonly names = new Set<string>();

  constructor(definitions: readonly Definition[]) {
    for (const [signature, handler, cost] of definitions) this.add(signature, handler, cost);
  }

  private add(signature: string, handler: Handler, cost: Cost | undefined): void {
    const parsed = parseSignature(signature);
    const key = keyOf(parsed.name, parsed.isMember, parsed.params.length);
    const overload = { ...parsed, handler, cost };
    this.byKey.set(key, [...(this.byKey.get(key) ?? []), overload]);
    this.names.add(parsed.name);
  }

  has(name: string): boolean {
    return this.names.has(name);
  }

  /** The overloads that may fit, and the type that the call then has. */
  resolve(
    name: string,
    isMember: boolean,
    args: readonly CelType[],
  ): { overloads: readonly Overload[]; result: CelType } | undefined {
    const all = this.byKey.get(keyOf(name, isMember, args.length)) ?? [];
    const fitting = all.flatMap((overload) => {
      const bindings: Bindings = new Map();
      const fits = overload.params.every((param, index) => {
        return types.accepts(param, args[index] ?? types.dyn, bindings);
      });
      return fits ? [{ overload, result: types.substitute(overload.result, bindings) }] : [];
    });
    const [first, ...others] = fitting;
    if (first === undefined) return undefined;
    const isSame = others.every(({ result }) => {
      return types.typeName(result) === types.typeName(first.result);
    });
    const overloads = fitting.map(({ overload }) => overload);
    return { overloads, result: isSame ? first.result : types.dyn };
  }
}

function keyOf(name: string, isMember: boolean, arity: number): string {
  return `${isMember ? "." : ""}${name}/${arity}`;
}

/** Finds the overload for values whose types were not known before. */
export function dispatch(overloads: readonly Overload[], args: readonly Value[]): Overload {
  const found = overloads.find(({ params }) => {
    return params.every((param, index) => isOfType(args[index] ?? null, param));
  });
  if (found === undefined) throw noSuchOverload();
  return found;
}

const runtimeNames: Readonly<Record<string, string>> = {
  timestamp: "google.protobuf.Timestamp",
  duration: "google.protobuf.Duration",
  null: "null_type",
};

/** The items of lists and maps are looked at by the functions themselves. */
function isOfType(value: Value, type: CelType): boolean {
  switch (type.kind) {
    case "dyn":
    case "param":
      return true;
    case "list":
      return value instanceof CelList;
    case "map":
    case "object":
      return isMap(value);
    case "optional":
      return value instanceof Optional;
    case "opaque":
      return value instanceof Opaque && value.content.type === type.name;
    default:
      return typeNameOf(value) === (runtimeNames[type.kind] ?? type.kind);
  }
}

interface Signature {
  readonly name: string;
  readonly isMember: boolean;
  readonly params: readonly CelType[];
  readonly result: CelType;
}

/** Parses "list<A>.indexOf(A): int" and "sets.contains(list<A>, list<A>): bool". */
function parseSignature(text: string): Signature {
  const match = /^(?:([a-zA-Z]+(?:<.*?>)?)\.)?((?:[a-z]+\.)?[\w@+\-*/%!<>=?]+)\((.*)\): (.+)$/.exec(
    text,
  );
  if (match === null) throw new Error(`assertion failed: malformed signature ${text}`);
  const [, receiver, name = "", params = "", result = ""] = match;
  const isMember = receiver !== undefined && isTypeName(receiver);
  const declared = splitTypes(params).map(parseType);
  return {
    name: receiver === undefined || isMember ? name : `${receiver}.${name}`,
    isMember,
    params: isMember ? [parseType(receiver), ...declared] : declared,
    result: parseType(result),
  };
}

function isTypeName(text: string): boolean {
  return text.includes("<") || namedTypes.has(text);
}

function splitTypes(text: string): string[] {
  return text === "" ? [] : text.split(/,\s*(?![^<]*>)/);
}

const namedTypes: ReadonlyMap<string, CelType> = new Map([
  ["dyn", types.dyn],
  ["bool", types.bool],
  ["int", types.int],
  ["uint", types.uint],
  ["double", types.double],
  ["string", types.string],
  ["bytes", types.bytes],
  ["timestamp", types.timestamp],
  ["duration", types.duration],
  ["type", types.typeType],
  ["Quantity", types.quantityType],
  ["IP", types.ipType],
  ["CIDR", types.cidrType],
  ["URL", types.urlType],
  ["Format", types.formatType],
]);

function parseType(text: string): CelType {
  const named = namedTypes.get(text);
  if (named !== undefined) return named;
  const generic = /^(list|map|optional)<(.*)>$/.exec(text);
  if (generic === null) return { kind: "param", name: text };
  const [first, second] = splitTypes(generic[2] ?? "").map(parseType);
  if (first === undefined) throw new Error(`assertion failed: malformed type ${text}`);
  if (generic[1] === "list") return types.listOf(first);
  return generic[1] === "optional"
    ? types.optionalOf(first)
    : types.mapOf(first, second ?? types.dyn);
}
