import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { pause } from "./eventually.ts";

/** A real `berth up` in a process of its own, as a user starts it. */
export interface Berth {
  readonly pid: number;
  readonly url: string;
  readonly data: string;
  readonly kubeconfig: string;
  readonly token: string;
  readonly ca: string;
  /** Everything that it printed so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  /** `kill -9`: resolves once the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM: resolves with the exit code. */
  stop(): Promise<number | string>;
}

export const repository = fileURLToPath(new URL("../../..", import.meta.url));
const program = join(repository, "bin", "berth");
/** As `npm start` runs it. */
const nodeFlags = ["--max-semi-space-size=4"];
/** Generous: a test says that it came up, the benchmark says how fast. */
const readyWithinMs = 30_000;

/** A test that fails half-way leaves its server behind; see cleanup.ts. */
export const running = new Set<ChildProcess>();

export function temporaryFolder(name: string): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `berth-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export async function startBerth(options: {
  readonly data: string;
  readonly port?: number;
  readonly args?: readonly string[];
  /** With the simulated cluster. */
  readonly demo?: boolean;
  /** On top of our own environment: failpoints, a clock that is wrong. */
  readonly env?: Readonly<Record<string, string>>;
  /** Nobody reads its output any more from then on. */
  readonly closesOutput?: "atOnce" | "whenReady";
}): Promise<Berth> {
  const noDemo = options.demo === true ? [] : ["--no-demo"];
  const args = ["up", ...noDemo, "--data", options.data, "--port", String(options.port ?? 0)];
  const command = [...nodeFlags, program, ...args, ...(options.args ?? [])];
  const child = spawn(process.execPath, command, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.env },
  });
  running.add(child);
  let printed = "";
  const ready = Promise.withResolvers<void>();
  const onOutput = (chunk: Buffer): void => {
    printed += chunk.toString();
    if (printed.includes("berth is ready")) ready.resolve();
  };
  child.stdout.on("data", onOutput);
  child.stderr.on("data", onOutput);
  if (options.closesOutput === "atOnce") {
    closeOutput(child);
    void untilLogged(options.data, "info leads").then(ready.resolve);
  }
  const exited = exitOf(child);
  const late = setTimeout(() => ready.reject(new Error(`not ready: ${printed}`)), readyWithinMs);
  const died = exited.then((code) => {
    throw new Error(`exited (${code}): ${printed}`);
  });
  try {
    await Promise.race([ready.promise, died]);
  } finally {
    clearTimeout(late);
    died.catch(() => undefined);
  }
  if (options.closesOutput === "whenReady") closeOutput(child);
  return handleOf(child, { data: options.data, exited, output: () => printed });
}

function closeOutput({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}

/** The log file of the data folder has every line, also where nobody reads the output. */
async function untilLogged(data: string, words: string): Promise<void> {
  const path = join(data, "berth.log");
  const isLogged = (): boolean => existsSync(path) && readFileSync(path, "utf8").includes(words);
  for (let waitedMs = 0; !isLogged() && waitedMs < readyWithinMs; waitedMs += 100) await pause(100);
}

/** Runs `berth` to its end, for commands and for starts that must be refused. */
export function runBerth(
  args: readonly string[],
  options: { readonly cwd?: string } = {},
): Promise<{ code: number | string; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    ...(options.cwd ? { cwd: options.cwd } : {}),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  return exitOf(child).then((code) => ({ code, stdout, stderr }));
}

function exitOf(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve(code ?? signal ?? "unknown");
    });
  });
}

function handleOf(
  child: ChildProcess,
  state: { data: string; exited: Promise<number | string>; output: () => string },
): Berth {
  const kubeconfig = join(state.data, "kubeconfig");
  const config = parse(readFileSync(kubeconfig, "utf8"));
  return {
    pid: child.pid ?? 0,
    url: config.clusters[0].cluster.server,
    data: state.data,
    kubeconfig,
    token: config.users[0].user.token,
    ca: Buffer.from(config.clusters[0].cluster["certificate-authority-data"], "base64").toString(),
    output: state.output,
    exited: state.exited,
    kill: async () => {
      child.kill("SIGKILL");
      await state.exited;
    },
    stop: async () => {
      child.kill("SIGTERM");
      return await state.exited;
    },
  };
}
