import type { ASTNode } from "@marcbachmann/cel-js";
import { parseGoDuration } from "./duration.ts";
import { compilePattern } from "./pattern.ts";
import { failAt, type Compiler } from "./program.ts";
import { parseTimestamp } from "./time.ts";

/** Kubernetes refuses a rule whose literal duration, time or pattern could never be read. */
export function checkLiteralArgument(
  compiler: Compiler,
  name: string,
  args: readonly ASTNode[],
): void {
  const check = checks.get(name);
  const literal = args.at(-1);
  if (check === undefined || literal?.op !== "value" || typeof literal.args !== "string") return;
  if (check(literal.args)) return;
  throw failAt(compiler, { from: literal.start }, `invalid ${name} argument`);
}

const checks: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["duration", (text) => parseGoDuration(text) !== undefined],
  ["timestamp", (text) => parseTimestamp(text) !== undefined],
  ["matches", isPattern],
]);

function isPattern(source: string): boolean {
  try {
    compilePattern(source);
    return true;
  } catch (error) {
    // The complaint itself names JavaScript's engine, which the author of a rule never chose.
    if (error instanceof Error) return false;
    throw error;
  }
}
