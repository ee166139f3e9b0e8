// What every npm script starts with: installs what is missing, then does the work under Node 24.
// Plain JavaScript for Node 20 and later, without packages: a fresh clone has nothing else.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import node24 from "../bin/node24.cjs";
import { installedPackages, missingPackages } from "./packages.mjs";

// Not `npm ci`: it refuses a lockfile that lacks the optional packages of other platforms, which a
// registry need not have. With a lockfile there, this installs the same versions and writes none.
const installOptions = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @type {Record<string, { dev: boolean, run: (args: string[]) => Promise<void> }>} */
const commands = {
  start: { dev: false, run: startBerth },
  test: { dev: true, run: (args) => runScript("test.ts", args) },
  check: { dev: true, run: (args) => runScript("test.ts", ["--fast", ...args]) },
  tidy: { dev: true, run: (args) => runScript("tidy.ts", args) },
  format: { dev: true, run: (args) => runScript("format.ts", args) },
  bench: { dev: true, run: (args) => runScript("bench.ts", args) },
  mutants: { dev: true, run: (args) => runScript("mutants.ts", args) },
  build: { dev: true, run: (args) => runScript("build.ts", args) },
};

const [name = "", ...args] = process.argv.slice(2);
const command = commands[name];
if (command === undefined) {
  fail(`there is no command "${name}" here. There are: ${Object.keys(commands).join(", ")}.`);
} else if (install(command.dev)) {
  if (node24.isNewEnough()) {
    node24.tether();
    await command.run(args);
  } else {
    node24.handOver([fileURLToPath(import.meta.url), name, ...args]);
  }
}

/** `npm start -- --port 1234` is `berth up --port 1234`.
 * @param {string[]} berthArgs */
async function startBerth(berthArgs) {
  const berth = join(root, "bin", "berth");
  process.argv = [process.execPath, berth, "up", ...berthArgs];
  createRequire(import.meta.url)(berth);
}

/** @param {string} file
 * @param {string[]} scriptArgs */
async function runScript(file, scriptArgs) {
  const { main } = await import(new URL(file, import.meta.url).href);
  process.exitCode = await main(scriptArgs);
}

/** Brings node_modules up to the lockfile. True if it is, or has been made so.
 * @param {boolean} wantsDev */
function install(wantsDev) {
  const lock = readLock("package-lock.json");
  const installed = readLock(join("node_modules", ".package-lock.json"));
  // Somebody who develops here keeps the tools, even if only `npm start` notices a new lockfile.
  const dev = wantsDev || installedPackages(installed).some((entry) => entry.dev === true);
  const exists = (/** @type {string} */ path) => existsSync(join(root, path));
  const missing = missingPackages({ lock, installed, dev, exists });
  const hasNode = node24.isNewEnough() || node24.findNode() !== undefined;
  if (missing.length === 0 && hasNode) return true;
  const when = installed === undefined ? "once" : "again, since they are not as locked";
  process.stderr.write(`berth: installing packages with npm, ${when} …\n`);
  return runNpm(["install", ...installOptions, dev ? "--include=dev" : "--omit=dev"]);
}

/** @param {string} path
 * @returns {import("./packages.mjs").Lock | undefined} */
function readLock(path) {
  const full = join(root, path);
  return existsSync(full) ? JSON.parse(readFileSync(full, "utf8")) : undefined;
}

/** With the npm and the Node that called us: those under node_modules are about to be replaced.
 * @param {string[]} npmArgs */
function runNpm(npmArgs) {
  const npm = process.env["npm_execpath"];
  const isNpm = npm !== undefined && /npm-cli\.[cm]?js$/.test(npm);
  const [file, ...first] = isNpm
    ? [process.env["npm_node_execpath"] ?? process.execPath, npm]
    : ["npm"];
  const result = spawnSync(file ?? "npm", [...first, ...npmArgs], { cwd: root, encoding: "utf8" });
  if (result.status === 0) return true;
  const said = result.error?.message ?? `${result.stdout}${result.stderr}`.trim();
  const end = said.split("\n").slice(-20).join("\n");
  fail(`npm ${npmArgs.join(" ")} failed in ${root}:\n${end}`);
  return false;
}

/** @param {string} sentence */
function fail(sentence) {
  process.stderr.write(`berth: ${sentence}\n`);
  process.exitCode = 1;
}
