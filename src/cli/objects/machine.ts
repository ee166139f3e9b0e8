import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { systemClock } from "../../app/system.ts";
import { type Connection, createHttpsTransport, type HttpsTransport } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";

/** What the commands need of the machine that they run on. Tests pass one of their own. */
export interface Machine {
  readonly clock: Clock;
  /** Whether results go to a person's terminal rather than into a file or pipe. */
  readonly isTerminal: boolean;
  /** A variable of the environment; undefined where it is not set or empty. */
  environment(name: string): string | undefined;
  dial(connection: Connection): HttpsTransport;
  /** The content of a file; undefined if there is none. Other failures are thrown. */
  readFile(path: string): string | undefined;
  /** The entries of a folder, sorted; undefined if it is none. */
  readFolder(path: string): readonly FolderEntry[] | undefined;
  /** Standard input to its end. */
  readInput(): Promise<string>;
  /** Writes a new private file and returns its path. */
  writeTemporary(name: string, content: string): string;
  /** Removes what writeTemporary wrote. */
  removeTemporary(path: string): void;
  /** Runs a person's editor on a file and resolves with its exit code. */
  runEditor(command: string, file: string): Promise<number>;
}

export interface FolderEntry {
  readonly name: string;
  readonly isFolder: boolean;
}

/** Standard input beyond this is not a manifest. */
const inputBytesMax = 64 * 1024 * 1024;

/** A command that waits is at work: unlike a server's, its timers keep the process alive. */
const waitingClock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, Math.min(delayMs, timerMsMax));
    return () => clearTimeout(timer);
  },
};

/** The longest that a timer of Node's can run, some 24 days. */
const timerMsMax = 2 ** 31 - 1;

export const systemMachine: Machine = {
  clock: waitingClock,
  isTerminal: process.stdout.isTTY,
  environment: (name) => process.env[name] || undefined,
  dial: createHttpsTransport,
  readFile,
  readFolder: (path) => {
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return undefined;
    return readdirSync(path, { withFileTypes: true })
      .map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  },
  readInput,
  writeTemporary: (name, content) => {
    const path = join(mkdtempSync(join(tmpdir(), "berth-edit-")), name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  },
  removeTemporary: (path) => rmSync(dirname(path), { recursive: true, force: true }),
  runEditor,
};

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    // cast: a stream without an encoding gives buffers.
    const buffer = chunk as Buffer;
    bytes += buffer.byteLength;
    if (bytes > inputBytesMax) throw new Error(`standard input has over ${inputBytesMax} bytes`);
    chunks.push(buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** $EDITOR may carry options ("code --wait"), so a shell takes it apart. */
function runEditor(command: string, file: string): Promise<number> {
  const child = spawn("sh", ["-c", `${command} "$1"`, "sh", file], { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  });
}

function readFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    if (code === "EISDIR") throw new Error(`${path} is a folder, not a file`, { cause: error });
    throw error;
  }
}
