import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Mutant } from "./mutants.ts";

export interface Caught {
  readonly seed: number;
  readonly failure: string;
}

/** Runs seeds in a process of its own with the line broken. Nothing if none of them notices. */
export async function runMutant(
  { name }: Mutant,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Caught | undefined> {
  const here = import.meta.dirname;
  const args = ["--import", join(here, "hook.ts"), join(here, "run-one.ts"), `${from}`, `${to}`];
  const env = { ...process.env, BERTH_MUTANT: name };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  // cast: run-one.ts prints it.
  return (JSON.parse(stdout) as Caught | null) ?? undefined;
}
