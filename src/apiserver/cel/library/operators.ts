import { compare } from "../equality.ts";
import { CelError } from "../errors.ts";
import { identityOf, keysIdentity } from "../identity.ts";
import type { Definition, Handler } from "../overload.ts";
import { checkDuration, checkTimestamp } from "../time.ts";
import { CelList, Duration, Timestamp, type Value } from "../values.ts";
import * as arg from "./arguments.ts";

/** Arithmetic and order. Equality is the compiler's own, for it takes any two values. */
export const operatorLibrary: readonly Definition[] = [
  ...orderings(),
  ...integerOperators(),
  ...doubleOperators(),
  ...timeOperators(),
  ["_+_(string, string): string", (a, b) => arg.text(a) + arg.text(b), sumCost],
  ["_+_(bytes, bytes): bytes", (a, b) => concatBytes(arg.bytes(a), arg.bytes(b)), sumCost],
  ["_+_(list<A>, list<A>): list<A>", (a, b) => addLists(arg.list(a), arg.list(b))],
  ["-_(int): int", (a) => arg.checkInt(-arg.integer(a))],
  ["-_(double): double", (a) => -arg.float(a)],
  ["!_(bool): bool", (a) => a !== true],
];

function orderings(): Definition[] {
  const tests: readonly (readonly [string, (order: number) => boolean])[] = [
    ["_<_", (order) => order < 0],
    ["_<=_", (order) => order <= 0],
    ["_>_", (order) => order > 0],
    ["_>=_", (order) => order >= 0],
  ];
  const numbers = ["int", "uint", "double"];
  const pairs = numbers.flatMap((left) => numbers.map((right) => `${left}, ${right}`));
  const others = ["bool", "string", "bytes", "timestamp", "duration"];
  const operands = [...pairs, ...others.map((type) => `${type}, ${type}`)];
  return tests.flatMap(([name, test]) => {
    const handler: Handler = (a, b) => {
      const order = compare(a ?? null, b ?? null);
      return order !== undefined && test(order);
    };
    return operands.map((types): Definition => {
      const signature = `${name}(${types}): bool`;
      const isText = types.startsWith("string") || types.startsWith("bytes");
      return isText ? [signature, handler, smallerCost] : [signature, handler];
    });
  });
}

/** Two texts are compared until the shorter ends. */
export function smallerCost([a, b]: readonly Value[]): number {
  return Math.ceil(Math.min(arg.sizeOf(a), arg.sizeOf(b)) * 0.1);
}

function sumCost([a, b]: readonly Value[]): number {
  return Math.ceil((arg.sizeOf(a) + arg.sizeOf(b)) * 0.1);
}

function integerOperators(): Definition[] {
  const operations: readonly (readonly [string, (a: bigint, b: bigint) => bigint])[] = [
    ["_+_", (a, b) => a + b],
    ["_-_", (a, b) => a - b],
    ["_*_", (a, b) => a * b],
    ["_/_", (a, b) => a / divisor(b, "division by zero")],
    ["_%_", (a, b) => a % divisor(b, "modulus by zero")],
  ];
  return operations.flatMap(([name, run]): Definition[] => [
    [`${name}(int, int): int`, (a, b) => arg.checkInt(run(arg.integer(a), arg.integer(b)))],
    [`${name}(uint, uint): uint`, (a, b) => arg.checkUint(run(arg.unsigned(a), arg.unsigned(b)))],
  ]);
}

function divisor(value: bigint, problem: string): bigint {
  if (value === 0n) throw new CelError(problem);
  return value;
}

function doubleOperators(): Definition[] {
  const operations: readonly (readonly [string, (a: number, b: number) => number])[] = [
    ["_+_", (a, b) => a + b],
    ["_-_", (a, b) => a - b],
    ["_*_", (a, b) => a * b],
    ["_/_", (a, b) => a / b],
  ];
  return operations.map(([name, run]): Definition => [
    `${name}(double, double): double`,
    (a, b) => run(arg.float(a), arg.float(b)),
  ]);
}

function timeOperators(): Definition[] {
  const at = (nanos: bigint): Timestamp => new Timestamp(checkTimestamp(nanos));
  const span = (nanos: bigint): Duration => new Duration(checkDuration(nanos));
  const time = arg.timestampNanos;
  const length = arg.durationNanos;
  return [
    ["_+_(timestamp, duration): timestamp", (a, b) => at(time(a) + length(b))],
    ["_+_(duration, timestamp): timestamp", (a, b) => at(length(a) + time(b))],
    ["_+_(duration, duration): duration", (a, b) => span(length(a) + length(b))],
    ["_-_(timestamp, duration): timestamp", (a, b) => at(time(a) - length(b))],
    ["_-_(timestamp, timestamp): duration", (a, b) => span(time(a) - time(b))],
    ["_-_(duration, duration): duration", (a, b) => span(length(a) - length(b))],
    ["-_(duration): duration", (a) => span(-length(a))],
  ];
}

function concatBytes(left: Uint8Array, right: Uint8Array): Uint8Array {
  const joined = new Uint8Array(left.length + right.length);
  joined.set(left);
  joined.set(right, left.length);
  return joined;
}

/**
 * Lists are joined. A set takes only what it does not have; a list-map keeps its order, and items
 * of the right replace those with the same keys.
 */
function addLists(left: CelList, right: CelList): CelList {
  const { kind } = left;
  const items: Value[] = left.values();
  if (kind === "atomic") return CelList.of([...items, ...right.values()]);
  const identify = (item: Value): string | undefined => {
    return kind === "set" ? identityOf(item) : keysIdentity(kind.keys, item);
  };
  const places = new Map(items.map((item, index) => [identify(item), index]));
  for (const item of right.values()) {
    const identity = identify(item);
    const place = places.get(identity);
    if (place !== undefined) items[place] = item;
    else places.set(identity, items.push(item) - 1);
  }
  return CelList.withKind(items, kind);
}
