import { parameterError } from "../errors.ts";
import { quirksOf, type Release } from "../release.ts";
import { isMember } from "./families.ts";
import { type Method, type Property, propertyAt, type Schema, schemaOf } from "./schema.ts";
import { type CheckContext, missingText, unknownText, valueFault } from "./values.ts";

/** A parameter as it arrived: text from a form, whatever JSON allows, or a list of both. */
export type RawValue = string | number | boolean | null | readonly RawValue[];
export type RawParameters = Readonly<Record<string, RawValue>>;
/** Checked parameters, as text; absent ones are not there. */
export type Parameters = Readonly<Record<string, string>>;

/** Checks the parameters of a call; throws all that is wrong, by name, in Proxmox' words. */
export function checkParameters(
  release: Release,
  method: Method,
  given: RawParameters,
): Parameters {
  const schema = schemaOf(release);
  const errors: Record<string, string> = {};
  const checked: Record<string, string> = {};
  for (const [name, raw] of Object.entries(given)) {
    const property = propertyOf(schema, method, name) ?? (method.x === 1 ? anything : undefined);
    const fault =
      property === undefined
        ? unknownText
        : faultOf({ release, schema, path: name }, property, raw);
    if (fault !== undefined) errors[name] = fault;
    else checked[name] = normalised(property, textOf(raw));
    const needed = neededBy(property, given);
    if (needed !== undefined) errors[needed] = quirksOf(release).requires(name);
  }
  const absent = requiredNames(schema, method).filter((name) => !(name in given));
  if (absent.length === 0 && Object.keys(errors).length === 0) return checked;
  const missing = Object.fromEntries(absent.map((name) => [name, missingText]));
  throw parameterError({ ...missing, ...errors });
}

const anything: Property = {};

/** What a parameter needs beside it and has not got. */
function neededBy(property: Property | undefined, given: RawParameters): string | undefined {
  const needed = property?.r;
  return needed === undefined || needed in given ? undefined : needed;
}

const required = new WeakMap<Method, readonly string[]>();

/** The parameters that a method always needs; found once for each. */
function requiredNames(schema: Schema, method: Method): readonly string[] {
  const known = required.get(method);
  if (known !== undefined) return known;
  const names = Object.entries(method.p)
    .filter(([name, place]) => !name.endsWith("[n]") && propertyAt(schema, place).o !== 1)
    .map(([name]) => name);
  required.set(method, names);
  return names;
}

/** The property of a name, members of numbered families included. */
export function propertyOf(schema: Schema, method: Method, name: string): Property | undefined {
  const place = method.p[name];
  if (place !== undefined && Object.hasOwn(method.p, name)) return propertyAt(schema, place);
  const family = name.replace(/\d+$/, "");
  const shared = method.p[`${family}[n]`];
  return shared !== undefined && isMember(family, name.slice(family.length))
    ? propertyAt(schema, shared)
    : undefined;
}

/** Values that were found to be right lately: the same ones come again and again. */
const rightValues = new WeakMap<Property, Set<string>>();
const rightValuesMax = { count: 64, length: 256 };

function faultOf(context: CheckContext, property: Property, raw: RawValue): string | undefined {
  if (typeof raw !== "string") return rawFault(context, property, raw);
  const known = rightValues.get(property);
  if (known?.has(raw) === true) return undefined;
  const fault = rawFault(context, property, raw);
  const isShort = raw.length <= rightValuesMax.length;
  if (fault === undefined && isShort) remember(property, known, raw);
  return fault;
}

function remember(property: Property, known: Set<string> | undefined, value: string): void {
  if (known === undefined) rightValues.set(property, new Set([value]));
  else {
    if (known.size >= rightValuesMax.count) known.clear();
    known.add(value);
  }
}

function rawFault(context: CheckContext, property: Property, raw: RawValue): string | undefined {
  if (Array.isArray(raw)) {
    if (property.t === "array") return undefined;
    if (quirksOf(context.release).arraysFailTypeCheck) {
      return `type check ('${property.t ?? "string"}') failed - got ARRAY`;
    }
    return valueFault(context, property, raw.map(textOf).join("\0"));
  }
  return valueFault(context, property, textOf(raw));
}

function textOf(raw: RawValue): string {
  if (raw === null) return "";
  if (typeof raw === "boolean") return raw ? "1" : "0";
  return Array.isArray(raw) ? raw.map(textOf).join("\0") : String(raw);
}

function normalised(property: Property | undefined, text: string): string {
  if (property?.t !== "integer" || /^(0|[1-9]\d*)$/.test(text)) return text;
  return String(BigInt(text.replace(/^\+/, "")));
}
