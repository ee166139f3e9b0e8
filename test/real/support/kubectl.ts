import { spawn } from "node:child_process";
import { accessSync, constants, readdirSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { homedir } from "node:os";

export interface Kubectl {
  /** "kubectl.1.27", as found. */
  readonly name: string;
  readonly path: string;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Every kubectl on this machine: in PATH, beside the one in PATH (the Google Cloud SDK keeps one
 * per version there), and in our own cache of built tools. Not every one called `kubectl` is one:
 * the SDK's is a dispatcher that picks another by the server's version, and counts too.
 */
export function findKubectls(): readonly Kubectl[] {
  const folders = new Set<string>();
  for (const folder of (process.env["PATH"] ?? "").split(delimiter)) folders.add(folder);
  for (const folder of Array.from(folders)) {
    const found = tryRealPath(join(folder, "kubectl"));
    if (found !== undefined) folders.add(dirname(found));
  }
  folders.add(join(homedir(), ".cache", "berth", "bin"));
  const byRealPath = new Map<string, Kubectl>();
  for (const folder of folders) {
    for (const name of listFolder(folder)) {
      if (!/^kubectl(\.1\.\d+)?$/.test(name)) continue;
      const path = tryRealPath(join(folder, name));
      if (path !== undefined && !byRealPath.has(path)) byRealPath.set(path, { name, path });
    }
  }
  return [...byRealPath.values()].sort((a, b) => a.name.localeCompare(b.name));
}

/** All of them where there is time for that; on every day the oldest and the newest. */
export function kubectlsToTry(): readonly Kubectl[] {
  const all = findKubectls();
  if (process.env["BERTH_REQUIRE_REAL"] === "1") return all;
  return all.filter((_, index) => index === 0 || index === all.length - 1);
}

export interface RunOptions {
  readonly input?: string;
  readonly env?: Record<string, string>;
  readonly timeoutMs?: number;
}

/** Runs one kubectl to its end. A hanging one is killed and reported as code 124. */
export function runKubectl(
  kubectl: Kubectl,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Ran> {
  const child = spawn(kubectl.path, [...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
  });
  let stdout = "";
  let stderr = "";
  let late = false;
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input ?? "");
  const timer = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, options.timeoutMs ?? 30_000);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code: late ? 124 : (code ?? 1), stdout, stderr });
    });
  });
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // PATH may name folders that do not exist.
  }
}

function tryRealPath(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return realpathSync(path);
  } catch {
    return undefined; // Absent or not executable: not a kubectl for us.
  }
}
