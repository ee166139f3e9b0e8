import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Skip } from "./suite.ts";

/** A skip that is allowed even where real components are required, and why. */
export interface AllowedSkip {
  /** A suite, or "suite › name of the test". */
  name: string;
  reason: string;
}

const path = join(import.meta.dirname, "..", "..", "test", "skips.json");

export function readAllowedSkips(): AllowedSkip[] {
  return existsSync(path) ? parseAllowedSkips(readFileSync(path, "utf8")) : [];
}

export function parseAllowedSkips(text: string): AllowedSkip[] {
  const parsed: unknown = JSON.parse(text);
  if (!Array.isArray(parsed)) throw new Error("test/skips.json must be a list.");
  return parsed.map((entry: unknown) => {
    if (!isAllowedSkip(entry) || entry.reason.length < 10) {
      throw new Error(
        `test/skips.json: each entry has a "name" and a "reason" of a sentence: ${String(entry)}`,
      );
    }
    return entry;
  });
}

/** Why a skip is allowed, or nothing if it is not. */
export function allowanceFor(
  skip: { suite: string } & Pick<Skip, "name">,
  allowed: readonly AllowedSkip[],
): string | undefined {
  const names = [skip.suite, `${skip.suite} › ${skip.name}`];
  return allowed.find((entry) => names.includes(entry.name))?.reason;
}

function isAllowedSkip(entry: unknown): entry is AllowedSkip {
  if (typeof entry !== "object" || entry === null) return false;
  return (
    "name" in entry &&
    "reason" in entry &&
    typeof entry.name === "string" &&
    typeof entry.reason === "string"
  );
}
