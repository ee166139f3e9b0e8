"use strict";
// Plain JavaScript for Node 20 and later: it runs before we know what this machine has.

const { spawn } = require("node:child_process");
const { existsSync, readFileSync } = require("node:fs");
const { constants } = require("node:os");
const path = require("node:path");

const nodeMajorMin = 24;
const handedOver = "BERTH_HANDED_OVER";

// V8 lets its young generation grow for throughput that a control plane does not need: with 10,000
// objects this saves a quarter of the memory and costs nothing measurable. `npm start` has it too.
const nodeFlags = ["--max-semi-space-size=4"];

// SIGUSR1 is missing because Node keeps it for its debugger.
/** @type {NodeJS.Signals[]} */
const forwardedSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"];
/** @type {NodeJS.Signals[]} */
const keyboardSignals = ["SIGINT", "SIGQUIT"];

/**
 * @param {string} [version] A Node version, as in "24.1.0".
 * @returns {boolean}
 */
function isNewEnough(version = process.versions.node) {
  return Number.parseInt(version, 10) >= nodeMajorMin;
}

/**
 * The Node of the optional package for this machine, wherever npm has put it: beside us, or hoisted
 * into a folder above. Folders are walked by hand because `require.resolve` remembers what it saw
 * before an installation.
 *
 * @returns {string | undefined}
 */
function findNode() {
  const name = `node-${process.platform}-${process.arch}`;
  for (let folder = path.dirname(__dirname); ; folder = path.dirname(folder)) {
    const home = path.join(folder, "node_modules", name);
    if (holdsNode(home)) return path.join(home, "bin", "node");
    if (folder === path.dirname(folder)) return undefined;
  }
}

/**
 * @param {string} home
 * @returns {boolean}
 */
function holdsNode(home) {
  try {
    const { version } = JSON.parse(readFileSync(path.join(home, "package.json"), "utf8"));
    return isNewEnough(version) && existsSync(path.join(home, "bin", "node"));
  } catch {
    // Not there, or half installed: the next folder may have it.
    return false;
  }
}

/** What to tell a person whose machine has no Node that could run Berth. */
const noNodeMessage =
  `berth: Node ${nodeMajorMin} or later is needed, this is Node ${process.versions.node}, and no ` +
  `installed package brings a newer one for ${process.platform}-${process.arch}. ` +
  `In a fresh clone, run npm start or npm install first; elsewhere install Node ${nodeMajorMin} ` +
  "(https://nodejs.org) and run it again.";

/**
 * Runs a file under Node 24 and becomes its shadow: the same terminal, the same signals, the same
 * end. The channel is there to be cut: see `tether`.
 *
 * @param {readonly string[]} args The file to run, and its arguments.
 * @returns {void}
 */
function handOver(args) {
  const node = findNode();
  if (node === undefined) return refuse(noNodeMessage);
  const child = spawn(node, [...nodeFlags, ...args], {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [handedOver]: String(process.pid) },
  });
  child.on("error", (error) => {
    refuse(`berth: ${node} does not run on this machine (${error.message}): install Node 24.`);
  });
  child.on("exit", endLike);
  for (const signal of forwardedSignals) {
    process.on(signal, () => {
      if (!cameFromKeyboard(signal)) child.kill(signal);
    });
  }
}

/**
 * @param {string} sentence
 * @returns {void}
 */
function refuse(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exitCode = 1;
}

/**
 * Ctrl-C goes to every process of the terminal's foreground group, so the child has it already; to
 * pass it on would make it two, and a second Ctrl-C means "now" to many programs.
 *
 * @param {NodeJS.Signals} signal
 * @returns {boolean}
 */
function cameFromKeyboard(signal) {
  if (!keyboardSignals.includes(signal)) return false;
  try {
    // After the name in brackets: state, parent, group, session, terminal, foreground group.
    const stat = readFileSync("/proc/self/stat", "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[2] === fields[5];
  } catch {
    return process.stdin.isTTY;
  }
}

/**
 * @param {number | null} code
 * @param {NodeJS.Signals | null} signal
 * @returns {void}
 */
function endLike(code, signal) {
  if (signal === null) {
    process.exitCode = code ?? 1;
    return;
  }
  // Should the signal not end us (as one that is ignored here), its conventional code still tells.
  process.exitCode = 128 + (constants.signals[signal] ?? 0);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/**
 * The other end of `handOver`: whoever was handed over to dies with the one who did it. A `kill -9`
 * of the first process cannot be passed on, but it cuts the channel. Does nothing in a process that
 * was started directly; never keeps the process alive.
 *
 * @returns {void}
 */
function tether() {
  if (process.env[handedOver] === undefined) return;
  // Processes that we start are not the wrapper's business.
  delete process.env[handedOver];
  process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.channel?.unref();
}

module.exports = { findNode, handOver, isNewEnough, noNodeMessage, tether };
