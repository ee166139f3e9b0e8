import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

/** How a process came to its end. */
export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  /** What it printed, the end of it if it was much. */
  output: string;
  /** Why we stopped it, if we did. */
  stopped?: string;
}

export interface GroupOptions {
  command: readonly string[];
  limitMs: number;
  /** Stops it also if no message came for so long. */
  silenceMs?: number;
  onMessage?(message: unknown): void;
}

/** Enough to read, and not enough to hurt when a program prints for ever. */
const outputCharsMax = 200_000;

const root = join(import.meta.dirname, "..", "..");
const running = new Set<ChildProcess>();

/**
 * Runs a program as a process group of its own, so that at its end nothing is left of it: neither
 * when it finishes, nor when it is stopped for taking too long, nor when we are.
 */
export function runGroup(options: GroupOptions): Promise<Ended> {
  const [file = "", ...args] = options.command;
  const channel: "ipc"[] = options.onMessage === undefined ? [] : ["ipc"];
  const child = spawn(file, args, {
    cwd: root,
    env: ownEnvironment(),
    detached: true,
    stdio: ["ignore", "pipe", "pipe", ...channel],
  });
  running.add(child);
  const ended: Ended = { code: null, signal: null, output: "" };
  const collect = (chunk: Buffer): void => {
    ended.output = (ended.output + chunk.toString()).slice(-outputCharsMax);
  };
  child.stdout?.on("data", collect);
  child.stderr?.on("data", collect);
  const watch = watchGroup(child, options, ended);
  child.on("message", (message) => {
    watch.heard();
    options.onMessage?.(message);
  });
  return new Promise((resolve) => {
    child.on("error", (error) => {
      ended.output += error.message;
      if (child.pid === undefined) finish();
    });
    child.on("exit", (code, signal) => {
      Object.assign(ended, { code, signal });
      // What it started and forgot would hold its pipes open, and a port, and a folder.
      killGroup(child);
    });
    child.on("close", finish);
    function finish(): void {
      watch.end();
      running.delete(child);
      resolve(ended);
    }
  });
}

/** Node's test runner marks its children by this, and runs nothing in their children. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _mark, ...rest } = process.env;
  return rest;
}

/** Stops everything that runs, at once. For the end of this process. */
export function killAllGroups(): void {
  for (const child of running) killGroup(child);
}

function watchGroup(
  child: ChildProcess,
  options: GroupOptions,
  ended: Ended,
): { heard(): void; end(): void } {
  const stop = (why: string): void => {
    ended.stopped = why;
    killGroup(child);
  };
  const { limitMs, silenceMs } = options;
  const limit = setTimeout(() => stop(`stopped after ${seconds(limitMs)}`), limitMs);
  const silence =
    silenceMs === undefined
      ? undefined
      : setTimeout(() => stop(`stopped after ${seconds(silenceMs)} of silence`), silenceMs);
  return {
    heard: () => void silence?.refresh(),
    end: () => {
      clearTimeout(limit);
      clearTimeout(silence);
    },
  };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The whole group is gone already, which is what was wanted.
  }
}

function seconds(timeMs: number): string {
  return `${Math.round(timeMs / 1000)} s`;
}
