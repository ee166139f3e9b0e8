import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { once } from "node:events";
import { after, test } from "node:test";
import { isGone } from "./process-gone.ts";

const repository = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "berth-launcher-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

/**
 * A program folder with our launcher and a main of its own. The launcher is made to believe that
 * this Node is too old, so that it hands over whatever Node runs the tests.
 */
function makeProgram(name: string, main: string): string {
  const root = join(scratch, name);
  mkdirSync(join(root, "src", "cli"), { recursive: true });
  cpSync(join(repository, "bin"), join(root, "bin"), { recursive: true });
  writeFileSync(join(root, "package.json"), '{ "type": "module" }');
  writeFileSync(join(root, "src", "cli", "main.ts"), `export ${main}`);
  return join(root, "bin", "berth");
}

/** Replaces the sources by a build, as in the package: Node runs no TypeScript in node_modules. */
function useBuild(berth: string, main: string): void {
  const root = dirname(dirname(berth));
  rmSync(join(root, "src"), { recursive: true });
  mkdirSync(join(root, "dist", "cli"), { recursive: true });
  writeFileSync(join(root, "dist", "cli", "main.js"), main);
}

/** Puts a package with this very Node where npm would install it. */
function installNode(berth: string, folder = dirname(dirname(berth)), version = "24.0.0"): void {
  const home = join(folder, "node_modules", `node-${process.platform}-${process.arch}`);
  mkdirSync(join(home, "bin"), { recursive: true });
  writeFileSync(join(home, "package.json"), JSON.stringify({ version }));
  symlinkSync(process.execPath, join(home, "bin", "node"));
}

/** Runs the launcher in a Node that says that it is version 20 when it is asked first. */
function startOld(berth: string, ...args: string[]): ChildProcess {
  const lie =
    "if (!process.env.BERTH_HANDED_OVER) Object.defineProperty(process, 'versions', " +
    "{ value: { ...process.versions, node: '20.0.0' } });";
  const lies = join(scratch, "lie.cjs");
  writeFileSync(lies, lie);
  return spawn(process.execPath, ["--require", lies, berth, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function read(
  child: ChildProcess,
): Promise<{ stdout: string; stderr: string; end: unknown }> {
  let stdout = "";
  let stderr = "";
  child.stdout?.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const [code, signal] = await once(child, "close");
  return { stdout, stderr, end: signal ?? code };
}

/** The first line that a process prints. */
async function firstLine(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) return String(chunk).trim();
  throw new Error("it ended without a word");
}

const waiting = `async function main() {
  process.on("SIGINT", () => { console.log("SIGINT"); });
  process.on("SIGTERM", () => { console.log("SIGTERM"); process.exit(7); });
  console.log(process.pid);
  return await new Promise((resolve) => setTimeout(resolve, 60_000, 0));
}`;

test("hands arguments and exit code over to Node 24, and is not kept alive by the channel", async () => {
  const main =
    "async function main(args) { console.log(args.join('+'), process.version); return 5; }";
  const berth = makeProgram("codes", main);
  installNode(berth);
  const { stdout, stderr, end } = await read(startOld(berth, "a", "--b=c d"));
  assert.equal(stdout, `a+--b=c d ${process.version}\n`);
  assert.equal(stderr, "");
  assert.equal(end, 5);
});

test("finds a Node that npm has put into a folder above", async () => {
  const berth = makeProgram(join("above", "node_modules", "berth"), "const main = 0;");
  useBuild(berth, "export const main = async () => 6;");
  installNode(berth, join(scratch, "above"));
  assert.equal((await read(startOld(berth))).end, 6);
});

test("says in one sentence that no Node 24 was found, and takes no older one for it", async () => {
  const berth = makeProgram("missing", "const main = async () => 0;");
  installNode(berth, undefined, "22.1.0");
  const { stdout, stderr, end } = await read(startOld(berth));
  assert.match(stderr, /^berth: Node 24 or later is needed, this is Node 20\.0\.0, .*\n$/);
  assert.deepEqual([stdout, end], ["", 1]);
});

test("says in one sentence that the Node it found does not run here", async () => {
  const berth = makeProgram("broken", "const main = async () => 0;");
  installNode(berth);
  const package_ = `node-${process.platform}-${process.arch}`;
  const node = join(dirname(dirname(berth)), "node_modules", package_, "bin", "node");
  rmSync(node);
  writeFileSync(node, "no program", { mode: 0o644 });
  const { stderr, end } = await read(startOld(berth));
  assert.match(stderr, /^berth: \S+ does not run on this machine \(.*\): install Node 24\.\n$/);
  assert.equal(end, 1);
});

test("passes a signal on, and ends as the program ends", async () => {
  const berth = makeProgram("signals", waiting);
  installNode(berth);
  const child = startOld(berth);
  await firstLine(child);
  child.kill("SIGTERM");
  assert.equal((await read(child)).end, 7);
});

test("dies of the same signal as the program", async () => {
  const berth = makeProgram("killed", waiting);
  installNode(berth);
  const child = startOld(berth);
  process.kill(Number(await firstLine(child)), "SIGKILL");
  assert.equal((await read(child)).end, "SIGKILL");
});

test("kill -9 of the launcher takes the program down", async () => {
  const berth = makeProgram("orphan", waiting);
  installNode(berth);
  const child = startOld(berth);
  const pid = Number(await firstLine(child));
  child.kill("SIGKILL");
  assert.ok(await isGone(pid), `process ${pid} survived`);
});

test("Ctrl-C on a terminal reaches the program once", { skip: needsScript() }, async () => {
  const main = `async function main() {
    let count = 0;
    process.on("SIGINT", () => {
      count += 1;
      setTimeout(() => { console.log("got " + count); process.exit(3); }, 300);
    });
    console.log("ready");
    return await new Promise((resolve) => setTimeout(resolve, 60_000, 0));
  }`;
  const berth = makeProgram("terminal", main);
  installNode(berth);
  const lies = join(scratch, "lie.cjs");
  // "exec", because Ctrl-C reaches everybody on the terminal, and some shells die of it.
  const command = `exec '${process.execPath}' --require '${lies}' '${berth}'`;
  const env = { ...process.env, SHELL: "/bin/sh" };
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (said.endsWith("ready\r\n")) child.stdin.write("\u0003");
  });
  const [code] = await once(child, "close");
  assert.match(said, /got 1\r\n$/);
  assert.equal(code, 3);
});

test("prefers the sources over a forgotten build, and shows no warning of Node", async () => {
  const main = `async function main() {
    process.emitWarning("noise", "ExperimentalWarning");
    await new Promise((resolve) => setImmediate(resolve));
    return 4;
  }`;
  const berth = makeProgram("sources", main);
  const old = join(dirname(dirname(berth)), "dist", "cli");
  mkdirSync(old, { recursive: true });
  writeFileSync(join(old, "main.js"), "export const main = async () => 9;");
  const { stderr, end } = await read(spawn(process.execPath, [berth]));
  assert.deepEqual([stderr, end], ["", 4]);
});

test("names a package that is missing, and what to do", async () => {
  const berth = makeProgram("packages", "{ main } from 'no-such-package';");
  const { stderr, end } = await read(spawn(process.execPath, [berth]));
  assert.match(stderr, /^berth: the package no-such-package is missing: run "npm ci" in .*\.\n$/);
  assert.equal(end, 1);
});

function needsScript(): string | false {
  return spawnSync("script", ["--version"]).status === 0 ? false : "the tool script is not here";
}
