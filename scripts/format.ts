import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** Formats the named files in place, or everything. */
export async function main(args: readonly string[]): Promise<number> {
  const oxfmt = join(root, "node_modules", ".bin", "oxfmt");
  const { status } = spawnSync(process.execPath, [oxfmt, ...args], { cwd: root, stdio: "inherit" });
  return status ?? 1;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
