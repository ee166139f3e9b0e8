import { jsonEqual } from "../../kernel/json.ts";
import { CelError } from "./errors.ts";
import { Uint, type Adapt, type CelMap, type Value } from "./values.ts";

/** An object of a schema. Its fields have CEL names; a null field counts as absent. */
export class ObjectMap implements CelMap {
  readonly isMap = true;
  readonly raw: Readonly<Record<string, unknown>>;
  readonly fields: ReadonlyMap<string, { readonly property: string; readonly adapt: Adapt }>;

  constructor(
    raw: Readonly<Record<string, unknown>>,
    fields: ReadonlyMap<string, { readonly property: string; readonly adapt: Adapt }>,
  ) {
    this.raw = raw;
    this.fields = fields;
  }

  get size(): number {
    return Object.keys(this.raw).length;
  }

  find(key: Value): Value | undefined {
    const field = typeof key === "string" ? this.fields.get(key) : undefined;
    if (field === undefined || !Object.hasOwn(this.raw, field.property)) return undefined;
    const raw = this.raw[field.property];
    return raw === null || raw === undefined ? undefined : field.adapt(raw);
  }

  /** Whether fields that the schema does not know are the same: they have no type to compare by. */
  hasSameUnknown(other: ObjectMap): boolean {
    const known = new Set([...this.fields.values()].map(({ property }) => property));
    return Object.keys(this.raw).every((key) => {
      if (known.has(key) || !Object.hasOwn(other.raw, key)) return true;
      return jsonEqual(this.raw[key], other.raw[key]);
    });
  }

  keys(): Value[] {
    const present = [...this.fields].filter(([, { property }]) =>
      Object.hasOwn(this.raw, property),
    );
    return present.map(([name]) => name);
  }
}

/** A JSON object whose keys are data: additionalProperties. */
export class JsonMap implements CelMap {
  readonly isMap = true;
  readonly raw: Readonly<Record<string, unknown>>;
  readonly adapt: Adapt;

  constructor(raw: Readonly<Record<string, unknown>>, adapt: Adapt) {
    this.raw = raw;
    this.adapt = adapt;
  }

  get size(): number {
    return Object.keys(this.raw).length;
  }

  find(key: Value): Value | undefined {
    if (typeof key !== "string" || !Object.hasOwn(this.raw, key)) return undefined;
    return this.adapt(this.raw[key]);
  }

  keys(): Value[] {
    return Object.keys(this.raw);
  }
}

/** A map that an expression made. Numbers of different types that are equal are the same key. */
export class LiteralMap implements CelMap {
  readonly isMap = true;
  private readonly entries: ReadonlyMap<string | boolean | bigint, readonly [Value, Value]>;

  constructor(entries: readonly (readonly [Value, Value])[]) {
    const byKey = new Map<string | boolean | bigint, readonly [Value, Value]>();
    for (const entry of entries) {
      const key = keyOf(entry[0]);
      if (key === undefined) throw new CelError("unsupported key type");
      byKey.set(key, entry);
    }
    this.entries = byKey;
  }

  get size(): number {
    return this.entries.size;
  }

  find(key: Value): Value | undefined {
    const normal = keyOf(key);
    return normal === undefined ? undefined : this.entries.get(normal)?.[1];
  }

  keys(): Value[] {
    return [...this.entries.values()].map(([key]) => key);
  }
}

function keyOf(key: Value): string | boolean | bigint | undefined {
  if (key instanceof Uint) return key.value;
  if (typeof key === "number") return Number.isInteger(key) ? BigInt(key) : undefined;
  if (typeof key === "string" || typeof key === "boolean" || typeof key === "bigint") return key;
  return undefined;
}
