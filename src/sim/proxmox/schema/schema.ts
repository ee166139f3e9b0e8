import { text as release74 } from "./pve-7.4.generated.ts";
import { text as release84 } from "./pve-8.4.generated.ts";
import { text as release92 } from "./pve-9.2.generated.ts";
import type { Release } from "../release.ts";

/**
 * One parameter, or one part of a property string, in our own compact form. The letters keep the
 * generated files small: t type, o optional, f format, e enumeration, p pattern, m and M bounds,
 * l and L lengths, r requires, k default key, a alias, K the key that the name itself stands for.
 */
export interface Property {
  readonly t?: "string" | "integer" | "number" | "boolean" | "array" | "object";
  readonly o?: 1;
  /** A format by name, or the parts of a property string by their places in the table. */
  readonly f?: string | Readonly<Record<string, number>>;
  readonly e?: readonly string[];
  readonly p?: string;
  readonly m?: number;
  readonly M?: number;
  readonly l?: number;
  readonly L?: number;
  readonly r?: string;
  readonly k?: 1;
  readonly a?: string;
  readonly K?: string;
}

/** A permission check as Proxmox writes it down: ["perm", path, privileges, …], "and", "or" … */
export type Check = readonly unknown[];

export interface Method {
  /** Parameters by name, as places in the table of properties. */
  readonly p: Readonly<Record<string, number>>;
  /** Unknown parameters are allowed. */
  readonly x?: 1;
  readonly c?: Check;
  /** Who may call it where no check is given: "all" users, or the "world". */
  readonly u?: string;
  /** Runs in pvedaemon, as root. */
  readonly d?: 1;
  /** Runs on the node that the path names. */
  readonly n?: 1;
  /** Not available to API tokens. */
  readonly T?: 1;
}

export interface Schema {
  readonly properties: readonly Property[];
  /** By "GET /nodes/{node}/qemu". */
  readonly methods: Readonly<Record<string, Method>>;
}

const texts: Readonly<Record<Release, string>> = {
  "7.4": release74,
  "8.4": release84,
  "9.2": release92,
};
const parsed = new Map<Release, Schema>();

/** What each served endpoint of this release accepts. Parsed once, then shared. */
export function schemaOf(release: Release): Schema {
  const known = parsed.get(release);
  if (known !== undefined) return known;
  // cast: the generated text has this form; the generator is its only author.
  const schema = JSON.parse(texts[release]) as Schema;
  parsed.set(release, schema);
  return schema;
}

export function propertyAt(schema: Schema, place: number | undefined): Property {
  return schema.properties[place ?? -1] ?? {};
}
