import { formatQuantity, type Quantity } from "../../kernel/quantity.ts";
import { formatIp, formatPrefix, type IpAddress, type IpPrefix } from "./ip.ts";
import type { NamedFormat } from "./named-formats.ts";
import type { ParsedUrl } from "./url.ts";

/**
 * CEL values. An int is a bigint and a double a number, so that the two cannot be mixed up; what
 * comes from JSON is adapted by its schema when it is read, see declare.ts.
 */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | CelList
  | CelMap
  | Optional
  | TypeValue
  | Opaque
  | Preserved;

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A point in time, in nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Optional {
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

export const none = new Optional(undefined);

/** A type as a value: what `type(x)` gives and `int` names. */
export class TypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A value of one of Kubernetes' own types. */
export type OpaqueContent =
  | { readonly type: "kubernetes.Quantity"; readonly quantity: Quantity }
  | { readonly type: "net.IP"; readonly ip: IpAddress }
  | { readonly type: "net.CIDR"; readonly prefix: IpPrefix }
  | { readonly type: "kubernetes.URL"; readonly url: ParsedUrl; readonly text: string }
  | { readonly type: "kubernetes.NamedFormat"; readonly format: NamedFormat };

export class Opaque {
  readonly content: OpaqueContent;
  constructor(content: OpaqueContent) {
    this.content = content;
  }

  /** Equal texts mean equal values. */
  identity(): string {
    const { content } = this;
    switch (content.type) {
      case "net.IP":
        return formatIp(content.ip);
      case "net.CIDR":
        return formatPrefix(content.prefix);
      case "kubernetes.URL":
        return content.text;
      case "kubernetes.NamedFormat":
        return content.format.name;
      case "kubernetes.Quantity":
        return formatQuantity({ ...content.quantity, format: "DecimalExponent" });
    }
  }
}

/** Data without a schema. It can be compared and nothing else. */
export class Preserved {
  readonly raw: unknown;
  constructor(raw: unknown) {
    this.raw = raw;
  }
}

export type Adapt = (raw: unknown) => Value;

/** How a list from a schema compares and adds: in order, as a set, or by the keys of its items. */
export type ListKind = "atomic" | "set" | { readonly keys: readonly string[] };

/** A list: of values, or of JSON that is adapted item by item when it is read. */
export class CelList {
  readonly raw: readonly unknown[];
  readonly adapt: Adapt | undefined;
  readonly kind: ListKind;

  private constructor(raw: readonly unknown[], adapt: Adapt | undefined, kind: ListKind) {
    this.raw = raw;
    this.adapt = adapt;
    this.kind = kind;
  }

  static of(values: readonly Value[]): CelList {
    return new CelList(values, undefined, "atomic");
  }

  /** Values that compare and add as the list that they came from. */
  static withKind(values: readonly Value[], kind: ListKind): CelList {
    return new CelList(values, undefined, kind);
  }

  static fromJson(raw: readonly unknown[], adapt: Adapt, kind: ListKind): CelList {
    return new CelList(raw, adapt, kind);
  }

  get size(): number {
    return this.raw.length;
  }

  /** The item at an index that is within bounds. */
  at(index: number): Value {
    const raw = this.raw[index];
    // cast: the constructors keep the two apart, without an adapter the items are values already.
    return this.adapt === undefined ? (raw as Value) : this.adapt(raw);
  }

  values(): Value[] {
    return Array.from({ length: this.size }, (_, index) => this.at(index));
  }
}

/** A map, or an object of a schema. */
export interface CelMap {
  readonly isMap: true;
  readonly size: number;
  /** The value under a key; undefined where there is none. */
  find(key: Value): Value | undefined;
  keys(): Value[];
}

export function isMap(value: Value | undefined): value is CelMap {
  return typeof value === "object" && value !== null && "isMap" in value;
}

/** The name of a value's type, as `type(x)` shows it. */
export function typeNameOf(value: Value): string {
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "string":
      return "string";
    default:
      return value === null ? "null_type" : objectTypeName(value);
  }
}

function objectTypeName(value: Exclude<Value, null | boolean | bigint | number | string>): string {
  if (value instanceof CelList) return "list";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Uint) return "uint";
  if (value instanceof Timestamp) return "google.protobuf.Timestamp";
  if (value instanceof Duration) return "google.protobuf.Duration";
  if (value instanceof Optional) return "optional_type";
  if (value instanceof TypeValue) return "type";
  if (value instanceof Opaque) return value.content.type;
  return value instanceof Preserved ? "unknown" : "map";
}
