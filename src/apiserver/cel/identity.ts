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

/**
 * A text that is the same for equal values and differs for others. With it sets and list-maps are
 * compared in one pass: user's data decides how long they are.
 */
export function identityOf(value: Value): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return Number.isInteger(value) ? `${BigInt(value)}` : `${value}`;
  if (value instanceof Uint) return `${value.value}`;
  if (typeof value !== "object" || value === null) return String(value);
  if (value instanceof CelList) return `[${value.values().map(identityOf).join(",")}]`;
  return isMap(value) ? mapIdentity(value) : objectIdentity(value);
}

function mapIdentity(map: CelMap): string {
  const entries = map.keys().map((key) => {
    return `${identityOf(key)}:${identityOf(map.find(key) ?? null)}`;
  });
  return `{${entries.sort().join(",")}}`;
}

function objectIdentity(value: object): string {
  if (value instanceof Timestamp) return `timestamp ${value.nanos}`;
  if (value instanceof Duration) return `duration ${value.nanos}`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  if (value instanceof Opaque) return `${value.content.type} ${value.identity()}`;
  if (value instanceof TypeValue) return `type ${value.name}`;
  return wrappedIdentity(value);
}

function wrappedIdentity(value: object): string {
  if (value instanceof Optional) {
    return value.value === undefined ? "none" : `optional ${identityOf(value.value)}`;
  }
  return value instanceof Preserved ? `preserved ${JSON.stringify(value.raw)}` : "unknown";
}

/** The keys of an item of a list-map, as one text. Undefined for what is no such item. */
export function keysIdentity(keys: readonly string[], item: Value): string | undefined {
  if (!isMap(item)) return undefined;
  return keys
    .map((key) => {
      const value = item.find(key);
      return value === undefined ? "" : identityOf(value);
    })
    .join("\0");
}
