import { usageError } from "../command.ts";

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Reads "60s", "1m30s", "2h" or "0", as kubectl's --timeout. Throws for anything else. */
export function readDurationMs(text: string, option: string): number {
  if (text === "0") return 0;
  const parts = [...text.matchAll(/([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)/g)];
  const isWhole = parts.map(([part]) => part).join("") === text.replace(/^-/, "");
  if (!isWhole || parts.length === 0) {
    throw usageError(`--${option} must be a duration such as 60s or 5m, not "${text}"`);
  }
  const sumMs = parts.reduce((sum, [, count, unit]) => {
    return sum + Number(count) * (unitMs[unit ?? ""] ?? 0);
  }, 0);
  return text.startsWith("-") ? -sumMs : sumMs;
}
