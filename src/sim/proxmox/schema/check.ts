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
    const property = propertyOf(schema, method, name) ?? (method.x === 1 ? {} : undefined);
    const context = { release, schema, path: name };
    const fault = property === undefined ? unknownText : rawFault(context, property, raw);
    if (fault !== undefined) errors[name] = fault;
    else checked[name] = normalised(property, textOf(raw));
    Object.assign(errors, neededBy(property, { name, given, release }));
  }
  const all = { ...missing(schema, method, given), ...errors };
  if (Object.keys(all).length > 0) throw parameterError(all);
  return checked;
}

function missing(schema: Schema, method: Method, given: RawParameters): Record<string, string> {
  const names = Object.entries(method.p)
    .filter(([name, place]) => !name.endsWith("[n]") && propertyAt(schema, place).o !== 1)
    .filter(([name]) => !(name in given));
  return Object.fromEntries(names.map(([name]) => [name, missingText]));
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

function neededBy(
  property: Property | undefined,
  { name, given, release }: { name: string; given: RawParameters; release: Release },
): Record<string, string> {
  const needed = property?.r;
  if (needed === undefined || needed in given) return {};
  return { [needed]: quirksOf(release).requires(name) };
}

function textOf(raw: RawValue): string {
  if (raw === null) return "";
  if (typeof raw === "boolean") return raw ? "1" : "0";
  return Array.isArray(raw) ? raw.map(textOf).join("\0") : String(raw);
}

function normalised(property: Property | undefined, text: string): string {
  return property?.t === "integer" ? String(BigInt(text.replace(/^\+/, ""))) : text;
}
