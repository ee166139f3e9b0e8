import { CelError } from "../errors.ts";
import { formatTimestamp } from "../time.ts";
import {
  CelList,
  Duration,
  isMap,
  Timestamp,
  TypeValue,
  typeNameOf,
  Uint,
  type CelMap,
  type Value,
} from "../values.ts";
import { durationSeconds, formatDouble } from "./standard.ts";

/** `"%d disks".format([2])`: the clauses %s %d %f %e %b %x %X %o and %%. */
export function formatText(template: string, args: CelList): string {
  let next = 0;
  const clause = /%(?:\.(\d+))?([^])?/g;
  return template.replaceAll(clause, (_all, precision: string | undefined, kind: string) => {
    if (kind === "%" && precision === undefined) return "%";
    const index = next++;
    if (index >= args.size) throw new CelError(`index ${index} out of range`);
    return formatClause(kind, args.at(index), Number(precision ?? 6));
  });
}

function formatClause(kind: string | undefined, value: Value, precision: number): string {
  switch (kind) {
    case "s":
      return formatPlain(value);
    case "d":
      return formatDecimal(value);
    case "f":
      return formatFixed(value, precision);
    case "e":
      return formatScientific(value, precision);
    case "b":
      return typeof value === "boolean" ? String(Number(value)) : inBase(value, 2, "binary");
    case "o":
      return inBase(value, 8, "octal");
    case "x":
      return formatHex(value);
    case "X":
      return formatHex(value).toUpperCase();
    default:
      throw new CelError(`${unparsable} "${kind ?? ""}"`);
  }
}

const unparsable = "could not parse formatting clause: unrecognized formatting clause";

function wrong(clause: string, wanted: string, value: Value): CelError {
  const given = typeNameOf(value);
  const problem = `${clause} clause can only be used on ${wanted}, was given ${given}`;
  return new CelError(`error during formatting: ${problem}`);
}

/** Strings as they are; everything else as CEL would write it. */
function formatPlain(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "number") return formatDouble(value);
  if (typeof value !== "object") return String(value);
  if (value instanceof CelList) return `[${value.values().map(formatNested).join(", ")}]`;
  return isMap(value) ? formatMap(value) : formatScalarObject(value);
}

function formatScalarObject(value: Value): string {
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Timestamp) return formatTimestamp(value.nanos);
  if (value instanceof Duration) return `${durationSeconds(value.nanos)}s`;
  if (value instanceof TypeValue) return value.name;
  const wanted =
    "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps";
  throw wrong("string", wanted, value);
}

function formatMap(map: CelMap): string {
  const entries = map.keys().map((key) => {
    return `${formatNested(key)}:${formatNested(map.find(key) ?? null)}`;
  });
  return `{${entries.sort().join(", ")}}`;
}

/** Within lists and maps, values are shown so that they could be read back. */
function formatNested(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") {
    return Number.isFinite(value) ? value.toFixed(6) : JSON.stringify(formatDouble(value));
  }
  if (value instanceof Uint8Array) return `b${JSON.stringify(new TextDecoder().decode(value))}`;
  if (value instanceof Timestamp) return `timestamp("${formatTimestamp(value.nanos)}")`;
  if (value instanceof Duration) return `duration("${durationSeconds(value.nanos)}s")`;
  return formatPlain(value);
}

function formatDecimal(value: Value): string {
  if (typeof value === "bigint") return String(value);
  if (value instanceof Uint) return String(value.value);
  throw wrong("decimal", "integers", value);
}

function formatFixed(value: Value, precision: number): string {
  const number = floatOf(value, "fixed-point");
  if (!Number.isFinite(number)) return infinite(number);
  return number.toLocaleString("en-US", {
    minimumFractionDigits: precision,
    maximumFractionDigits: precision,
  });
}

function formatScientific(value: Value, precision: number): string {
  const number = floatOf(value, "scientific");
  if (!Number.isFinite(number)) return infinite(number);
  const [digits = "", exponent = "+0"] = number.toExponential(precision).split("e");
  const power = exponent.slice(1).padStart(2, "0");
  return `${digits}\u202f×\u202f10${superscript(exponent.startsWith("-") ? `-${power}` : power)}`;
}

const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(digits: string): string {
  return [...digits].map((digit) => (digit === "-" ? "⁻" : superscripts[Number(digit)])).join("");
}

function infinite(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "∞" : "-∞";
}

function floatOf(value: Value, clause: string): number {
  if (typeof value === "number") return value;
  if (value === "NaN" || value === "Infinity" || value === "-Infinity") return Number(value);
  throw wrong(clause, "doubles", value);
}

function inBase(value: Value, base: number, clause: string): string {
  if (typeof value === "bigint") return value.toString(base);
  if (value instanceof Uint) return value.value.toString(base);
  throw wrong(clause, clause === "binary" ? "integers and bools" : "integers", value);
}

function formatHex(value: Value): string {
  if (typeof value === "string") return Buffer.from(value).toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  if (typeof value !== "bigint" && !(value instanceof Uint)) {
    throw wrong("hex", "integers, byte buffers, and strings", value);
  }
  return inBase(value, 16, "hex");
}
