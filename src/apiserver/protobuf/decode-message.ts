import { WireType, type BinaryReader } from "@bufbuild/protobuf/wire";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { Field, Message, Value } from "./message.ts";
import { forEachField, MalformedProtobuf, readText, scalars } from "./scalars.ts";

/**
 * List elements and map entries of one body. An element takes two bytes but becomes an object, so
 * the size of the body alone does not bound the memory it can ask for.
 */
const elementsMax = 100_000;

/** Counts the elements of one body, over all of its lists and maps. */
export interface Budget {
  elements: number;
}

/**
 * Reads a message into the JSON that Go would make of it. The depth is that of the table, whatever
 * the bytes say: what nests deeper is not in it, and is skipped.
 */
export function decodeMessage(
  bytes: Uint8Array,
  message: Message,
  budget: Budget = { elements: 0 },
): JsonObject {
  const found: Found = { values: new Map(), entries: new Map() };
  forEachField(bytes, (fieldNumber, wireType, reader) => {
    const field = message[fieldNumber];
    if (field === undefined) return false;
    readField(found, field, { wireType, reader, budget, name: field.name });
    return true;
  });
  const json: [string, Json][] = [];
  for (const field of Object.values(message)) {
    const value = finished(found, field);
    if (value !== undefined) json.push([field.name, value]);
  }
  return Object.fromEntries(json);
}

/** What the bytes have: of a field that is no list, only the last value counts. */
interface Found {
  readonly values: Map<Field, Json[]>;
  readonly entries: Map<Field, [string, Json][]>;
}

/** A value that is about to be read. */
interface Source {
  readonly wireType: WireType;
  readonly reader: BinaryReader;
  readonly budget: Budget;
  /** Of the field, for refusals. */
  readonly name: string;
}

function readField(found: Found, field: Field, source: Source): void {
  if (field.shape === "one") {
    found.values.set(field, [readPlain(field.value, source)]);
    return;
  }
  if (++source.budget.elements > elementsMax) {
    throw new MalformedProtobuf(`it has more than ${elementsMax} list elements and map entries`);
  }
  if (field.shape === "map") append(found.entries, field, readEntry(field, source));
  else append(found.values, field, readPlain(field.value, source));
}

function append<T>(lists: Map<Field, T[]>, field: Field, item: T): void {
  const list = lists.get(field);
  if (list === undefined) lists.set(field, [item]);
  else list.push(item);
}

function readPlain(value: Value, source: Source): Json {
  const { reader, budget } = source;
  if (typeof value !== "string") return decodeMessage(readMessage(source), value, budget);
  assertWireType(source, scalars[value].wireType);
  return scalars[value].read(reader);
}

/** An entry of a map is a message of its own: the key is field 1, the value field 2. */
function readEntry(field: Field, source: Source): [string, Json] {
  let key = "";
  let value = zeroOf(field.value);
  forEachField(readMessage(source), (fieldNumber, wireType, reader) => {
    const inner = { ...source, wireType, reader };
    if (fieldNumber === 1) key = readKey(inner);
    else if (fieldNumber === 2) value = readPlain(field.value, inner);
    else return false;
    return true;
  });
  return [key, value];
}

function readKey(source: Source): string {
  assertWireType(source, WireType.LengthDelimited);
  return readText(source.reader);
}

function readMessage(source: Source): Uint8Array {
  assertWireType(source, WireType.LengthDelimited);
  return source.reader.bytes();
}

function assertWireType({ wireType, name }: Source, expected: WireType): void {
  if (wireType === expected) return;
  throw new MalformedProtobuf(`the field ${name} has the wire type ${wireType}`);
}

/** What the JSON shows of a field: undefined where it does not have it. */
function finished(found: Found, field: Field): Json | undefined {
  const entries = found.entries.get(field);
  if (entries !== undefined) return Object.fromEntries(entries);
  const values = found.values.get(field);
  if (values === undefined) return absent(field);
  if (field.shape === "list") return values;
  const value = values[0] ?? null;
  return field.presence === "nonzero" && value === zeroOf(field.value) ? undefined : value;
}

function absent(field: Field): Json | undefined {
  switch (field.presence) {
    case "nonzero":
    case "present":
      return undefined;
    case "always":
      return zeroOf(field.value);
    case "nullable":
      return null;
  }
}

function zeroOf(value: Value): Json {
  return typeof value === "string" ? scalars[value].zero : decodeMessage(new Uint8Array(), value);
}
