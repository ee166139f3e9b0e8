import { quirksOf, type Release } from "../release.ts";
import { formatFault } from "./formats.ts";
import { namedParts } from "./named-parts.ts";
import { type Property, propertyAt, type Schema } from "./schema.ts";

export interface CheckContext {
  readonly release: Release;
  readonly schema: Schema;
  /** "scsi0", or "scsi0.cache" inside of a property string. */
  readonly path: string;
}

export const unknownText =
  "property is not defined in schema and the schema does not allow additional properties";
export const missingText = "property is missing and it is not optional";

/** What is wrong with one value: type, then format, pattern, length, bounds, enumeration. */
export function valueFault(
  context: CheckContext,
  property: Property,
  value: string,
): string | undefined {
  return (
    typeFault(property, value) ??
    propertyFormatFault(context, property, value) ??
    shapeFault(property, value)
  );
}

function typeFault(property: Property, value: string): string | undefined {
  const pattern = typePatterns[property.t ?? "string"];
  if (pattern === undefined || pattern.test(value)) return undefined;
  return `type check ('${property.t ?? ""}') failed - got '${value}'`;
}

const typePatterns: Readonly<Record<string, RegExp>> = {
  integer: /^[+-]?\d+$/,
  number: /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/,
  boolean: /^[01]$/,
};

function propertyFormatFault(
  context: CheckContext,
  property: Property,
  value: string,
): string | undefined {
  const { f } = property;
  if (f === undefined) return undefined;
  const parts = typeof f === "string" ? namedParts(f) : partsIn(context.schema, f);
  const fault =
    parts === undefined
      ? formatFault(typeof f === "string" ? f : "", value, context.release)
      : partsFault(context, parts, value);
  return fault === undefined ? undefined : `invalid format - ${fault}`;
}

/** Made once for each property string of a schema. */
const partsByPlaces = new WeakMap<Readonly<Record<string, number>>, Parts>();

function partsIn(schema: Schema, places: Readonly<Record<string, number>>): Parts {
  const known = partsByPlaces.get(places);
  if (known !== undefined) return known;
  const parts = Object.fromEntries(
    Object.entries(places).map(([name, place]) => [name, propertyAt(schema, place)]),
  );
  partsByPlaces.set(places, parts);
  return parts;
}

function shapeFault(property: Property, value: string): string | undefined {
  const { p, L, l, e } = property;
  if (p !== undefined && !patternOf(p).test(value)) return "value does not match the regex pattern";
  if (L !== undefined && value.length > L) return `value may only be ${L} characters long`;
  if (l !== undefined && value.length < l) return `value must be at least ${l} characters long`;
  const outside = boundsFault(property, value);
  if (outside !== undefined) return outside;
  if (e === undefined || e.includes(value)) return undefined;
  return `value '${value}' does not have a value in the enumeration '${e.join(", ")}'`;
}

function boundsFault({ t, m, M }: Property, value: string): string | undefined {
  if (t !== "integer" && t !== "number") return undefined;
  if (m !== undefined && Number(value) < m) return `value must have a minimum value of ${m}`;
  if (M !== undefined && Number(value) > M) return `value must have a maximum value of ${M}`;
  return undefined;
}

const patterns = new Map<string, RegExp>();

/** Perl's expressions are ours, but for "{,n}" and the flag in front. */
function patternOf(source: string): RegExp {
  const known = patterns.get(source);
  if (known !== undefined) return known;
  const isInsensitive = /^\(\?\^?i[^)]*:|^\(\?i\)/.test(source);
  const plain = source
    .replaceAll(/\(\?\^?[a-z]*:/g, "(?:")
    .replaceAll("(?i)", "")
    .replaceAll(/\{,(\d+)\}/g, "{0,$1}")
    .replaceAll(/\[:(\w+):\]/g, "\\w");
  const pattern = new RegExp(`^(?:${plain})$`, isInsensitive ? "i" : "");
  patterns.set(source, pattern);
  return pattern;
}

type Parts = Readonly<Record<string, Property>>;

type Parsed =
  | { readonly kind: "parts"; readonly values: ReadonlyMap<string, string> }
  | { readonly kind: "fault"; readonly fault: string };

/** What is wrong with "virtio,bridge=vmbr0" and its like, or undefined. */
function partsFault(context: CheckContext, parts: Parts, value: string): string | undefined {
  const parsed = parseParts(parts, value);
  if (parsed.kind === "fault") return parsed.fault;
  const faults = [
    ...[...parsed.values].flatMap(([name, text]) => {
      const fault = partFault(context, parts[name], { name, text });
      return fault === undefined ? [] : [{ name, fault }];
    }),
    ...missingParts(context, parts, parsed.values),
  ];
  if (faults.length === 0) return undefined;
  const lines = faults.map(({ name, fault }) => `${context.path}.${name}: ${fault}\n`);
  return `format error\n${lines.join("")}`;
}

/** Parts that another one needs, or that always must be there. */
function missingParts(
  { path, release }: CheckContext,
  parts: Parts,
  values: ReadonlyMap<string, string>,
): { name: string; fault: string }[] {
  const needed = [...values.keys()].flatMap((by) => {
    const name = parts[by]?.r;
    if (name === undefined || values.has(name)) return [];
    return [{ name, fault: quirksOf(release).requires(`${path}.${by}`) }];
  });
  const always = Object.entries(parts)
    .filter(([name, part]) => part.o !== 1 && part.a === undefined && !values.has(name))
    .map(([name]) => ({ name, fault: missingText }));
  return [...needed, ...always];
}

function partFault(
  context: CheckContext,
  part: Property | undefined,
  { name, text }: { name: string; text: string },
): string | undefined {
  if (part === undefined) return unknownText;
  return valueFault({ ...context, path: `${context.path}.${name}` }, part, text);
}

/** Takes a property string apart; aliases become what they stand for. */
function parseParts(parts: Parts, value: string): Parsed {
  const values = new Map<string, string>();
  for (const piece of value.split(",").filter((each) => each.trim() !== "")) {
    const pairs = pairsOf(parts, piece);
    if (typeof pairs === "string") return { kind: "fault", fault: pairs };
    for (const [name, text] of pairs) {
      if (values.has(name)) {
        return {
          kind: "fault",
          fault: `duplicate key in comma-separated list property: ${name}\n`,
        };
      }
      values.set(name, booleanText(parts[name], text));
    }
  }
  return { kind: "parts", values };
}

function pairsOf(parts: Parts, piece: string): [string, string][] | string {
  const pair = /^([^=]+)=(.*)$/s.exec(piece);
  if (pair === null) {
    const key = Object.entries(parts).find(([, part]) => part.k === 1)?.[0];
    if (key === undefined) return "value without key, but schema does not define a default key\n";
    return [[key, piece]];
  }
  const [, name = "", text = ""] = pair;
  const part = parts[name];
  if (part?.a === undefined) return [[name, text]];
  return part.K === undefined
    ? [[part.a, text]]
    : [
        [part.K, name],
        [part.a, text],
      ];
}

/** Inside of property strings people may write yes and no. */
function booleanText(part: Property | undefined, text: string): string {
  if (part?.t !== "boolean") return text;
  if (/^(1|on|yes|true)$/i.test(text)) return "1";
  return /^(0|off|no|false)$/i.test(text) ? "0" : text;
}
