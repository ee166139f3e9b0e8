import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Mutant } from "./mutant.ts";

export interface Caught {
  readonly seed: number;
  readonly failure: string;
}

/** What is left of a history that was made shorter. */
export interface Left {
  /** Of the error, what JSON keeps. */
  readonly failure: { readonly law?: string };
  readonly steps: readonly { readonly index: number; readonly name: string }[];
  readonly stepsBefore: number;
  readonly events: number;
  readonly eventsBefore: number;
  readonly trace: readonly string[];
}

export interface Seeds {
  readonly from: number;
  readonly to: number;
  /** Only those that surely have this step. */
  readonly step?: string | undefined;
}

/** One guard, broken. */
export function guardMutant(id: string): Mutant {
  return { name: `guard:${id}`, guards: [id], edits: [] };
}

/** Runs seeds in a process of its own with the line broken. Nothing if none of them notices. */
export async function runMutant(
  mutant: Mutant,
  { from, to, step }: Seeds,
): Promise<Caught | undefined> {
  const file = new URL("./run-one.ts", import.meta.url);
  const args = [`${from}`, `${to}`, ...(step === undefined ? [] : [step])];
  const printed = await runBroken(mutant, file, args);
  // cast: run-one.ts prints it.
  return (printed as Caught | null) ?? undefined;
}

/** Makes the history of a seed that notices as short as it can be. */
export async function shrinkMutant(mutant: Mutant, seed: number): Promise<Left | undefined> {
  const printed = await runBroken(mutant, new URL("./shrink-one.ts", import.meta.url), [`${seed}`]);
  // cast: shrink-one.ts prints it.
  return (printed as Left | null) ?? undefined;
}

async function runBroken({ name }: Mutant, file: URL, args: readonly string[]): Promise<unknown> {
  const hook = new URL("./hook.ts", import.meta.url).href;
  const program = fileURLToPath(file);
  const env = { ...process.env, BERTH_MUTANT: name };
  const options = { env, maxBuffer: 64 * 1024 * 1024 };
  const all = ["--import", hook, program, ...args];
  const { stdout } = await promisify(execFile)(process.execPath, all, options);
  return JSON.parse(stdout);
}
