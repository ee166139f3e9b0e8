import { compare, equals } from "../equality.ts";
import { CelError, noSuchOverload } from "../errors.ts";
import type { Definition, Handler } from "../overload.ts";
import { checkDuration } from "../time.ts";
import { Duration, Uint, type CelList, type Value } from "../values.ts";
import * as arg from "./arguments.ts";

const comparable = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];

/** Kubernetes' list functions and CEL's sets. */
export const listLibrary: readonly Definition[] = [
  ...comparable.flatMap((type): Definition[] => [
    [`list<${type}>.isSorted(): bool`, isSorted, onePass],
    [`list<${type}>.min(): ${type}`, (v) => extreme(arg.list(v), "min"), onePass],
    [`list<${type}>.max(): ${type}`, (v) => extreme(arg.list(v), "max"), onePass],
  ]),
  [
    "list<int>.sum(): int",
    sumOf(0n, (a, b) => arg.checkInt(arg.integer(a) + arg.integer(b))),
    onePass,
  ],
  ["list<uint>.sum(): uint", sumOf(new Uint(0n), addUnsigned), onePass],
  ["list<double>.sum(): double", sumOf(0, (a, b) => arg.float(a) + arg.float(b)), onePass],
  ["list<duration>.sum(): duration", sumOf(new Duration(0n), addDurations), onePass],
  ["list<A>.indexOf(A): int", (v, item) => position(arg.list(v), item ?? null, false), onePass],
  ["list<A>.lastIndexOf(A): int", (v, item) => position(arg.list(v), item ?? null, true), onePass],
  ["sets.contains(list<A>, list<A>): bool", (a, b) => hasAll(arg.list(a), arg.list(b)), product],
  ["sets.equivalent(list<A>, list<A>): bool", isEquivalent, twoProducts],
  ["sets.intersects(list<A>, list<A>): bool", intersects, product],
];

/** One pass over the list, and over the texts in it. */
function onePass([subject]: readonly Value[]): number {
  const list = arg.list(subject);
  let cost = 0;
  for (let i = 0; i < list.size; i++) {
    const item = list.at(i);
    const isText = typeof item === "string" || item instanceof Uint8Array;
    cost += isText ? Math.floor(arg.sizeOf(item) * 0.1) : 1;
  }
  return cost;
}

/** Every item of one list may be compared with every item of the other. */
function product([a, b]: readonly Value[]): number {
  return 1 + arg.sizeOf(a) * arg.sizeOf(b);
}

function twoProducts([a, b]: readonly Value[]): number {
  return 1 + 2 * arg.sizeOf(a) * arg.sizeOf(b);
}

function isSorted(value?: Value): boolean {
  const list = arg.list(value);
  for (let i = 1; i < list.size; i++) {
    const order = compare(list.at(i - 1), list.at(i));
    if (order !== undefined && order > 0) return false;
  }
  return true;
}

function extreme(list: CelList, name: "min" | "max"): Value {
  if (list.size === 0) throw new CelError(`${name} called on empty list`);
  const wanted = name === "min" ? 1 : -1;
  return list.values().reduce((best, item) => {
    const order = compare(best, item);
    return order !== undefined && Math.sign(order) === wanted ? item : best;
  });
}

function sumOf(zero: Value, add: (left: Value, right: Value) => Value): Handler {
  return (value) => {
    const list = arg.list(value);
    let sum = zero;
    for (let i = 0; i < list.size; i++) sum = add(sum, list.at(i));
    return sum;
  };
}

function addUnsigned(left: Value, right: Value): Uint {
  return arg.checkUint(arg.unsigned(left) + arg.unsigned(right));
}

function addDurations(left: Value, right: Value): Duration {
  if (!(left instanceof Duration && right instanceof Duration)) throw noSuchOverload();
  return new Duration(checkDuration(left.nanos + right.nanos));
}

function position(list: CelList, item: Value, isLast: boolean): bigint {
  const found = (value: Value): boolean => equals(value, item);
  const values = list.values();
  return BigInt(isLast ? values.findLastIndex(found) : values.findIndex(found));
}

function hasAll(list: CelList, wanted: CelList): boolean {
  const values = list.values();
  return wanted.values().every((item) => values.some((value) => equals(value, item)));
}

function isEquivalent(left?: Value, right?: Value): boolean {
  return hasAll(arg.list(left), arg.list(right)) && hasAll(arg.list(right), arg.list(left));
}

function intersects(left?: Value, right?: Value): boolean {
  const others = arg.list(right).values();
  return arg
    .list(left)
    .values()
    .some((item) => others.some((other) => equals(item, other)));
}
