import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, test } from "node:test";

// The package as a user gets it: packed from this tree, installed into an empty folder elsewhere.

const repository = join(import.meta.dirname, "..");
const scratch = mkdtempSync(join(tmpdir(), "berth-package-"));
const home = join(scratch, "home");
const program = join(home, "node_modules", "berth", "bin", "berth");
let contents: readonly string[] = [];

after(() => rmSync(scratch, { recursive: true, force: true }));

before(() => {
  const packed = npm(repository, "pack", "--json", "--pack-destination", scratch);
  const [tarball] = JSON.parse(packed.slice(packed.indexOf("["))) as [
    { filename: string; files: { path: string }[] },
  ];
  contents = tarball.files.map((file) => file.path);
  mkdirSync(home);
  writeFileSync(join(home, "package.json"), '{ "private": true }');
  const options = ["--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  npm(home, "install", ...options, join(scratch, tarball.filename));
});

test("holds the program as plain JavaScript and nothing else of the repository", () => {
  const allowed =
    /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|bin\/|dist\/|docs\/|examples\/)/;
  const strange = contents.filter((path) => {
    return !allowed.test(path) || /\.ts$|\.test\.|\/testing\/|conformance|node_modules/.test(path);
  });
  assert.deepEqual(strange, []);
  for (const path of ["bin/berth", "bin/node24.cjs", "bin/package.json", "dist/cli/main.js"]) {
    assert.ok(contents.includes(path), `${path} is missing`);
  }
  assert.ok(contents.includes("LICENSE"));
});

test("leaves no build behind in the repository", () => {
  assert.ok(!readdirSync(repository).includes("dist"));
});

test("brings a Node 24 of its own where there is a package for this machine", (t) => {
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) {
    return t.skip("Node 24 comes as a package for Linux on x64 and arm64 only");
  }
  const node = join(home, "node_modules", `node-linux-${process.arch}`, "bin", "node");
  assert.match(execFileSync(node, ["--version"], { encoding: "utf8" }), /^v24\./);
});

test("runs as npx berth", () => {
  const version = npx("--no-install", "berth", "--version");
  assert.match(version, /^berth \d+\.\d+\.\d+\n$/);
  assert.match(npx("--no-install", "berth", "up", "--help"), /--port/);
});

for (const { name, node } of nodes()) {
  test(`answers and serves under ${name}`, async (t) => {
    if (node === undefined) return t.skip("this machine has no Node before 24");
    const version = execFileSync(node, [program, "--version"], { encoding: "utf8" });
    assert.match(version, /^berth \d+\.\d+\.\d+\n$/);
    const data = join(scratch, `data-${name.replaceAll(" ", "-")}`);
    const said = await startAndStop(node, ["up", "--no-demo", "--port", "0", "--data", data]);
    assert.match(said, /berth is ready/);
  });
}

/** Starts it, stops it once it is ready, and returns what it said; it must end well. */
async function startAndStop(node: string, args: readonly string[]): Promise<string> {
  const child = spawn(node, [program, ...args], { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const listen = (chunk: Buffer): void => {
    said += chunk.toString();
    if (said.includes("berth is ready")) child.kill("SIGTERM");
  };
  child.stdout.on("data", listen);
  child.stderr.on("data", listen);
  const [code] = await once(child, "close");
  assert.equal(code, 0, said);
  return said;
}

/** The Node that runs this, and the one that a user may have: outside of any node_modules. */
function nodes(): { name: string; node: string | undefined }[] {
  const old = outerPath()
    .split(delimiter)
    .map((folder) => join(folder, "node"))
    .find((path) => Number(/^v(\d+)/.exec(versionOf(path))?.[1] ?? 99) < 24);
  return [
    { name: "this Node", node: process.execPath },
    { name: "an older Node", node: old },
  ];
}

function versionOf(node: string): string {
  try {
    return execFileSync(node, ["--version"], { encoding: "utf8", stdio: "pipe" });
  } catch {
    return "";
  }
}

function npm(cwd: string, ...args: string[]): string {
  return run("npm", cwd, args);
}

function npx(...args: string[]): string {
  return run("npx", home, args);
}

function run(file: string, cwd: string, args: readonly string[]): string {
  // As from a user's shell: npm tells its children about the project that it was called in.
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$/i.test(name));
  const env = { ...Object.fromEntries(inherited), PATH: outerPath() };
  return execFileSync(file, [...args], { cwd, env, encoding: "utf8", stdio: "pipe" });
}

/** PATH without what npm puts in front of it. */
function outerPath(): string {
  const inner = dirname(realpathSync(process.execPath));
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !folder.includes("node_modules") && folder !== inner)
    .join(delimiter);
}
