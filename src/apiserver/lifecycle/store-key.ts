import type { Key } from "../../store/store.ts";

// Neither buckets nor ids can hold a line break: both are made of names.
const separator = "\n";

/** A store key as one string, for sets and maps. */
export function formatKey(key: Key): string {
  return `${key.bucket}${separator}${key.id}`;
}

export function parseKey(text: string): Key {
  const end = text.indexOf(separator);
  return { bucket: text.slice(0, end), id: text.slice(end + separator.length) };
}
