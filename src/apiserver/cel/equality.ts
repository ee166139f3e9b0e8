import { jsonEqual } from "../../kernel/json.ts";
import { noSuchOverload } from "./errors.ts";
import { identityOf, keysIdentity } from "./identity.ts";
import { ObjectMap } from "./maps.ts";
import {
  CelList,
  Duration,
  isMap,
  Opaque,
  Optional,
  Preserved,
  Timestamp,
  TypeValue,
  Uint,
  type CelMap,
  type Value,
} from "./values.ts";

/** Equality of CEL: numbers by their value whatever their type, other types only with their own. */
export function equals(left: Value, right: Value): boolean {
  if (left === right) return true;
  if (isNumeric(left)) return isNumeric(right) && compareNumbers(left, right) === 0;
  if (isMap(left)) return isMap(right) && mapsEqual(left, right);
  // Texts and truths that differ end here: every other class of values is a type of its own.
  return isObject(left) && isObject(right) && objectsEqual(left, right);
}

function isObject(value: Value): value is Extract<Value, object> {
  return typeof value === "object" && value !== null;
}

function objectsEqual(left: object, right: object): boolean {
  if (left.constructor !== right.constructor) return false;
  if (left instanceof CelList && right instanceof CelList) return listsEqual(left, right);
  if (left instanceof Optional && right instanceof Optional) return optionalsEqual(left, right);
  if (left instanceof Opaque && right instanceof Opaque) return opaquesEqual(left, right);
  return plainEqual(left, right);
}

function plainEqual(left: object, right: object): boolean {
  if (left instanceof TypeValue && right instanceof TypeValue) return left.name === right.name;
  if (left instanceof Preserved && right instanceof Preserved) {
    return jsonEqual(left.raw, right.raw);
  }
  return compareSameClass(left, right) === 0;
}

function optionalsEqual(left: Optional, right: Optional): boolean {
  if (left.value === undefined || right.value === undefined) return left.value === right.value;
  return equals(left.value, right.value);
}

function opaquesEqual(left: Opaque, right: Opaque): boolean {
  return left.content.type === right.content.type && left.identity() === right.identity();
}

function listsEqual(left: CelList, right: CelList): boolean {
  if (left.size !== right.size) return false;
  const { kind } = left;
  if (kind === "set") return setsEqual(left, right);
  if (typeof kind === "object") return listMapsEqual(kind.keys, left, right);
  for (let index = 0; index < left.size; index++) {
    if (!equals(left.at(index), right.at(index))) return false;
  }
  return true;
}

function setsEqual(left: CelList, right: CelList): boolean {
  const members = new Set(left.values().map(identityOf));
  return right.values().every((item) => members.has(identityOf(item)));
}

function listMapsEqual(keys: readonly string[], left: CelList, right: CelList): boolean {
  const byKeys = new Map(left.values().map((item) => [keysIdentity(keys, item), item]));
  return right.values().every((item) => {
    const match = byKeys.get(keysIdentity(keys, item));
    return match !== undefined && equals(match, item);
  });
}

function mapsEqual(left: CelMap, right: CelMap): boolean {
  if (left.size !== right.size) return false;
  const areObjects = left instanceof ObjectMap && right instanceof ObjectMap;
  if (areObjects && !left.hasSameUnknown(right)) return false;
  return left.keys().every((key) => {
    const [one, other] = [left.find(key), right.find(key)];
    return one === undefined || other === undefined ? one === other : equals(one, other);
  });
}

type Numeric = bigint | number | Uint;

function isNumeric(value: Value): value is Numeric {
  return typeof value === "bigint" || typeof value === "number" || value instanceof Uint;
}

// JavaScript compares a bigint and a number exactly, by value.
function compareNumbers(left: Numeric, right: Numeric): number | undefined {
  const one = left instanceof Uint ? left.value : left;
  const other = right instanceof Uint ? right.value : right;
  if (one < other) return -1;
  if (one > other) return 1;
  // NaN is neither.
  return Number.isNaN(one) || Number.isNaN(other) ? undefined : 0;
}

/** Order of CEL: -1, 0 or 1; undefined for NaN, which is before and after nothing. */
export function compare(left: Value, right: Value): number | undefined {
  if (isNumeric(left) && isNumeric(right)) return compareNumbers(left, right);
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  return compareSameClass(left, right);
}

function compareSameClass(left: unknown, right: unknown): number {
  if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right);
  if (left instanceof Timestamp && right instanceof Timestamp)
    return sign(left.nanos - right.nanos);
  if (left instanceof Duration && right instanceof Duration) return sign(left.nanos - right.nanos);
  throw noSuchOverload();
}

function sign(value: bigint): number {
  if (value === 0n) return 0;
  return value < 0n ? -1 : 1;
}

const surrogate = /[\ud800-\udfff]/;

/** By code points, as CEL does; JavaScript alone would order by UTF-16 units. */
function compareText(left: string, right: string): number {
  if (left === right) return 0;
  if (!surrogate.test(left) && !surrogate.test(right)) return left < right ? -1 : 1;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
