import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "bench");

/** `npm run bench` lists the benchmarks, `npm run bench -- NAME [options]` runs one. */
export async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  const known = benchmarks();
  if (name === undefined) {
    for (const [each, summary] of known) process.stdout.write(`${each.padEnd(12)} ${summary}\n`);
    return 0;
  }
  if (!known.has(name)) {
    const names = [...known.keys()].join(", ");
    process.stderr.write(`there is no benchmark "${name}". There are: ${names}.\n`);
    return 64;
  }
  const file = join(folder, `${name}.ts`);
  const result = spawnSync(process.execPath, [file, ...rest], { stdio: "inherit" });
  return result.status ?? 1;
}

/** A benchmark is a file that begins by saying what it measures; the others are its tools. */
function benchmarks(): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of readdirSync(folder).toSorted()) {
    const summary = /^\/\*\*\n \* (.+)\n/.exec(readFileSync(join(folder, file), "utf8"))?.[1];
    if (file.endsWith(".ts") && summary !== undefined) found.set(file.slice(0, -3), summary);
  }
  return found;
}
