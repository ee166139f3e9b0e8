import { isJsonObject } from "../../../kernel/json.ts";
import { asText } from "../wire/rows.ts";

/** A machine's configuration as GET config gives it: every value as text, but for the digest. */
export interface PveConfig {
  readonly digest: string;
  readonly values: Readonly<Record<string, string>>;
}

/** What to write: keys with their new text, and keys to delete. */
export interface ConfigChange {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

export function parseConfig(data: unknown): PveConfig | undefined {
  if (!isJsonObject(data)) return undefined;
  const { digest, ...rest } = data;
  if (typeof digest !== "string") return undefined;
  // Numbers and texts take turns between releases and fields: `memory` is both.
  const values = Object.entries(rest).flatMap(([key, value]) => {
    const text = asText(value);
    return text === undefined ? [] : [[key, text] as const];
  });
  return { digest, values: Object.fromEntries(values) };
}

/** Several changes as one. Where a key is set it is not deleted. */
export function joinChanges(changes: readonly ConfigChange[]): ConfigChange {
  const set = Object.fromEntries(changes.flatMap((change) => Object.entries(change.set)));
  const remove = changes.flatMap((change) => change.remove).filter((key) => !(key in set));
  return { set, remove: [...new Set(remove)] };
}

/** The values as they would be after a change. Used where nothing is sent. */
export function changedValues(
  values: Readonly<Record<string, string>>,
  { set, remove }: ConfigChange,
): Record<string, string> {
  const kept = Object.entries(values).filter(([key]) => !remove.includes(key));
  return { ...Object.fromEntries(kept), ...set };
}
