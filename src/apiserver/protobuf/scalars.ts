import { isUtf8 } from "node:buffer";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { formatTime } from "../../kernel/clock.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { limits } from "../../kernel/limits.ts";
import type { Scalar } from "./message.ts";

/** What cannot be read. The sentence goes to the client, as part of a 400. */
export class MalformedProtobuf extends Error {}

/** How each value is read from the bytes, into the JSON that Go makes of it. */
export const scalars: Readonly<Record<Scalar, ScalarCodec>> = {
  text: { wireType: WireType.LengthDelimited, zero: "", read: readText },
  bytes: { wireType: WireType.LengthDelimited, zero: "", read: readBytes },
  flag: { wireType: WireType.Varint, zero: false, read: (reader) => reader.bool() },
  int32: { wireType: WireType.Varint, zero: 0, read: (reader) => reader.int32() },
  int64: { wireType: WireType.Varint, zero: 0, read: readInt64 },
  time: { wireType: WireType.LengthDelimited, zero: null, read: readTime },
  microTime: { wireType: WireType.LengthDelimited, zero: null, read: readMicroTime },
  fieldsV1: { wireType: WireType.LengthDelimited, zero: null, read: readFields },
  textList: { wireType: WireType.LengthDelimited, zero: null, read: readTextList },
};

export interface ScalarCodec {
  readonly wireType: WireType;
  readonly zero: Json;
  readonly read: (reader: BinaryReader) => Json;
}

/** Calls back for each field of a message, which reads its value or has it skipped. */
export function forEachField(
  bytes: Uint8Array,
  visit: (fieldNumber: number, wireType: WireType, reader: BinaryReader) => boolean,
): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [fieldNumber, wireType] = reader.tag();
    if (!visit(fieldNumber, wireType, reader)) reader.skip(wireType, fieldNumber);
  }
}

/** Go takes any bytes for a text. JSON cannot hold what is not UTF-8, so that is refused. */
export function readText(reader: BinaryReader): string {
  const bytes = reader.bytes();
  if (!isUtf8(bytes)) throw new MalformedProtobuf("a string field contains invalid UTF-8");
  return Buffer.from(bytes).toString("utf8");
}

function readBytes(reader: BinaryReader): string {
  return Buffer.from(reader.bytes()).toString("base64");
}

function readInt64(reader: BinaryReader): number {
  const value = Number(reader.int64());
  if (Number.isSafeInteger(value)) return value;
  throw new MalformedProtobuf("an integer field is out of range");
}

/** Times of the API have four digits for the year; beyond them RFC 3339 has no form. */
const timeMsMin = Date.parse("0001-01-01T00:00:00Z");
const timeMsMax = Date.parse("9999-12-31T23:59:59Z");

/** Seconds only: Go drops the rest, so that both encodings of an object say the same. */
function readTime(reader: BinaryReader): string | null {
  const timestamp = readTimestamp(reader);
  return timestamp === undefined ? null : formatTime(timestamp.timeMs);
}

function readMicroTime(reader: BinaryReader): string | null {
  const timestamp = readTimestamp(reader);
  if (timestamp === undefined) return null;
  const micros = String(Math.trunc(timestamp.nanos / 1000)).padStart(6, "0");
  return `${formatTime(timestamp.timeMs).slice(0, -1)}.${micros}Z`;
}

/** No bytes at all are the time that is not set. */
function readTimestamp(reader: BinaryReader): { timeMs: number; nanos: number } | undefined {
  const bytes = reader.bytes();
  if (bytes.length === 0) return undefined;
  let seconds = 0;
  let nanos = 0;
  forEachField(bytes, (fieldNumber, wireType, fields) => {
    if (wireType !== WireType.Varint || fieldNumber > 2) return false;
    if (fieldNumber === 1) seconds = readInt64(fields);
    else nanos = fields.int32();
    return true;
  });
  const timeMs = seconds * 1000;
  const known = timeMs >= timeMsMin && timeMs <= timeMsMax && nanos >= 0 && nanos < 1e9;
  if (!known) throw new MalformedProtobuf("a time field is out of range");
  return { timeMs, nanos };
}

/** Managed fields are JSON in bytes, and become part of the JSON around them. */
function readFields(reader: BinaryReader): Json {
  let raw: Uint8Array | undefined;
  forEachField(reader.bytes(), (fieldNumber, wireType, fields) => {
    if (fieldNumber !== 1 || wireType !== WireType.LengthDelimited) return false;
    raw = fields.bytes();
    return true;
  });
  if (raw === undefined || raw.length === 0) return null;
  const parsed = parseFields(Buffer.from(raw).toString("utf8"));
  if (isJsonObject(parsed) && depthWithin(parsed, limits.jsonDepth)) return parsed;
  throw new MalformedProtobuf("a fieldsV1 field is not a JSON object");
}

function parseFields(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new MalformedProtobuf("a fieldsV1 field is not a JSON object", { cause: error });
  }
}

function depthWithin(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => depthWithin(inner, depth - 1));
}

/** The values of extra attributes: a message with one list, which JSON shows as the list alone. */
function readTextList(reader: BinaryReader): string[] | null {
  const texts: string[] = [];
  forEachField(reader.bytes(), (fieldNumber, wireType, fields) => {
    if (fieldNumber !== 1 || wireType !== WireType.LengthDelimited) return false;
    texts.push(readText(fields));
    return true;
  });
  // To Go an empty list is none.
  return texts.length === 0 ? null : texts;
}
