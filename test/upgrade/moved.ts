import { isJsonObject, type Json } from "../../src/kernel/json.ts";

/** How far from the moment of the kept folder a number still is a time. */
const rangeMs = 400 * 24 * 3600_000;
const isoTime = /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
const upidTime = /(UPID:[^:]+:[0-9A-F]{8}:[0-9A-F]{8,9}:)([0-9A-F]{8})(?=:)/g;

/** The moment of a kept folder, and how much later it is taken to be. */
export interface Move {
  readonly nowMs: number;
  readonly byMs: number;
}

/**
 * The same, with all its times later: as if the power had failed just now. Tasks have their time in
 * their names.
 */
export function moved(value: Json, move: Move): Json {
  if (typeof value === "string") return movedText(value, move);
  if (typeof value === "number") {
    return Math.abs(value - move.nowMs) < rangeMs ? value + move.byMs : value;
  }
  if (Array.isArray(value)) return value.map((one) => moved(one, move));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([name, one]) => [name, moved(one, move)] as const);
  return Object.fromEntries(entries);
}

/** Times in the API are whole seconds, or have microseconds. */
function movedText(text: string, { byMs }: Move): string {
  const seconds = Math.round(byMs / 1000);
  return text
    .replaceAll(isoTime, (time) => {
      const later = new Date(Date.parse(time) + byMs).toISOString();
      return time.includes(".") ? later.replace("Z", "000Z") : later.replace(/\.\d+Z$/, "Z");
    })
    .replaceAll(upidTime, (_all, before: string, hex: string) => {
      const later = (Number.parseInt(hex, 16) + seconds).toString(16).toUpperCase();
      return `${before}${later.padStart(8, "0")}`;
    });
}
