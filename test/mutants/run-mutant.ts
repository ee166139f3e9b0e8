import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
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
  const hook = new URL("./hook.ts", import.meta.url).href;
  const program = fileURLToPath(new URL("./run-one.ts", import.meta.url));
  const args = ["--import", hook, program, `${from}`, `${to}`];
  const env = { ...process.env, BERTH_MUTANT: name };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  // cast: run-one.ts prints it.
  return (JSON.parse(stdout) as Caught | null) ?? undefined;
}
