import { execFile } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

// The files beside this one are the real components that suites run against: how to find each, and,
// where they are required, how to get it. `provide` runs only if BERTH_REQUIRE_REAL=1 asks for it.

/** What we build ourselves; outside the repository, so that every clone shares it. */
export const toolFolder = join(homedir(), ".cache", "berth", "bin");

/** The path of the go.mod in what "go mod download -json" printed. */
export function goModIn(downloaded: string): string {
  const parsed: unknown = JSON.parse(downloaded);
  if (typeof parsed === "object" && parsed !== null && "GoMod" in parsed)
    return String(parsed.GoMod);
  throw new Error(`go mod download gave no go.mod: ${downloaded}`);
}

/** Runs go, and gives what it printed. */
export async function go(cwd: string, args: readonly string[]): Promise<string> {
  // The checksum database is not reachable from everywhere; the version is fixed, and what is built
  // is used in tests only.
  const env = { ...process.env, GOSUMDB: "off", GOFLAGS: "-mod=mod" };
  const { stdout } = await promisify(execFile)("go", [...args], { cwd, env, maxBuffer: 2 ** 24 });
  return stdout;
}

/** The folder for temporary files is often another file system, where a rename is refused. */
export function renameAcross(from: string, to: string): void {
  const beside = `${to}.${process.pid}`;
  writeFileSync(beside, readFileSync(from), { mode: 0o755 });
  renameSync(beside, to);
}
