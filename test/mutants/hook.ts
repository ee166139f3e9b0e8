import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { breakGuard, traceGuards } from "../../scripts/tidy/guards.ts";
import { codeOf, tokenize } from "../../scripts/tidy/tokens.ts";
import type { Mutant } from "./mutant.ts";
import { falls, mutants } from "./mutants.ts";

// Loaded before everything else in a process that runs with something broken. BERTH_MUTANT names a
// mutant of mutants.ts, or is "guard:ID". With BERTH_GUARD_TRACE, the name of a file, nothing is
// broken: the ids of the guards that stopped something are written there, one per line.

const { BERTH_MUTANT: name = "", BERTH_GUARD_TRACE: trace } = process.env;
const mutant = trace === undefined ? named() : undefined;
if (trace !== undefined) traceTo(trace);

registerHooks({
  load: (url, context, next) => {
    const loaded = next(url, context);
    if (!/\/src\/.*\.ts$/.test(url)) return loaded;
    const text = textOf(loaded.source);
    const source = mutant === undefined ? traced(text) : broken(text, url, mutant);
    return source === text ? loaded : { ...loaded, source };
  },
});

function named(): Mutant {
  if (name.startsWith("guard:")) return { name, guards: [name.slice(6)], edits: [] };
  const found = [...mutants, ...falls].find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`no mutant ${name}`);
  return found;
}

function broken(text: string, url: string, { guards = [], edits }: Mutant): string {
  let source = text;
  for (const id of guards.filter((one) => text.includes(`"${one}"`))) {
    source = breakGuard(source, codeOf(tokenize(source)), id) ?? source;
  }
  for (const { file, find, replace } of edits.filter((edit) => url.endsWith(`/${edit.file}`))) {
    if (source.split(find).length !== 2) {
      throw new Error(`${file} does not have the line of "${name}" once`);
    }
    source = source.replace(find, () => replace);
  }
  return source;
}

function traced(text: string): string {
  return text.includes("kernel/guard.ts") ? traceGuards(text, codeOf(tokenize(text))) : text;
}

function traceTo(file: string): void {
  const stopped = new Set<string>();
  const berthTrace = {
    guard: (id: string, holds: boolean): boolean => {
      if (!holds) stopped.add(id);
      return holds;
    },
    precondition: <T>(id: string, value: T): T => {
      stopped.add(id);
      return value;
    },
  };
  Object.assign(globalThis, { berthTrace });
  process.on("exit", () => appendFileSync(file, [...stopped].map((id) => `${id}\n`).join("")));
}

function textOf(source: unknown): string {
  if (typeof source === "string") return source;
  return source instanceof Uint8Array ? new TextDecoder().decode(source) : "";
}
