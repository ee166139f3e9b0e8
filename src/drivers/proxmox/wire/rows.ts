import { isJsonObject, type JsonObject } from "../../../kernel/json.ts";

/** The rows of a list; what is none is left out. */
export function rowsOf(data: unknown): JsonObject[] {
  return Array.isArray(data) ? data.filter(isJsonObject) : [];
}

/** A text or number of a row as text; the empty text where there is neither. */
export function textOf(row: JsonObject, key: string): string {
  return asText(row[key]) ?? "";
}

/** Perl does not tell numbers from texts, so neither does anybody who reads what it wrote. */
export function asText(value: unknown): string | undefined {
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/** Booleans are 1 and 0, as numbers or texts. */
export function isSet(row: JsonObject, key: string): boolean {
  return textOf(row, key) === "1";
}
