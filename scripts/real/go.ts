import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

// The files beside this one are the real components that suites run against: how to find each, and,
// where they are required, how to get it. `provide` runs only if BERTH_REQUIRE_REAL=1 asks for it.

/** What we build ourselves; outside the repository, so that every clone shares it. */
export const toolFolder = join(homedir(), ".cache", "berth", "bin");

export interface Program {
  /** The package to build. */
  readonly package: string;
  /** The go.mod of a module that requires it; what it leaves out, Go adds. */
  readonly module: string;
  readonly linkerFlags?: readonly string[];
}

/**
 * Builds a program from its published sources, which takes minutes the first time. It is renamed
 * into place when it is whole: a half-written one would be taken for one that works.
 */
export async function buildProgram(program: Program, to: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "berth-build-"));
  try {
    writeFileSync(join(work, "go.mod"), program.module);
    // Without symbols, which nobody debugs here, it is a third smaller.
    const linkerFlags = ["-s", "-w", ...(program.linkerFlags ?? [])].join(" ");
    const flags = ["-trimpath", "-ldflags", linkerFlags];
    await go(work, ["build", ...flags, "-o", "program", program.package]);
    mkdirSync(dirname(to), { recursive: true });
    renameAcross(join(work, "program"), to);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The go.mod of a published module. */
export async function readModule(module: string): Promise<string> {
  const downloaded: unknown = JSON.parse(await go(tmpdir(), ["mod", "download", "-json", module]));
  if (typeof downloaded === "object" && downloaded !== null && "GoMod" in downloaded)
    return readFileSync(String(downloaded.GoMod), "utf8");
  throw new Error(`go mod download gave no go.mod of ${module}`);
}

/** Runs go, and gives what it printed. */
async function go(cwd: string, args: readonly string[]): Promise<string> {
  // The checksum database is not reachable from everywhere; the version is fixed, and what is built
  // is used in tests only.
  const env = { ...process.env, GOSUMDB: "off", GOFLAGS: "-mod=mod" };
  const { stdout } = await promisify(execFile)("go", [...args], { cwd, env, maxBuffer: 2 ** 24 });
  return stdout;
}

/** The folder for temporary files is often another file system, where a rename is refused. */
function renameAcross(from: string, to: string): void {
  const beside = `${to}.${process.pid}`;
  writeFileSync(beside, readFileSync(from), { mode: 0o755 });
  renameSync(beside, to);
}
