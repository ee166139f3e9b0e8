import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { systemClock, systemRandom } from "../../src/app/system.ts";
import { type Release, releases, startProxmoxSimulator } from "../../src/sim/index.ts";
import { repository } from "./support/berth.ts";
import { freePorts } from "./support/free-ports.ts";

/** Scenarios that the simulator does not pass yet, by release, with the reason. Only to shrink. */
const notYet: Readonly<Record<Release, Readonly<Record<string, string>>>> = {
  "7.4": {},
  "8.4": {},
  "9.2": {},
};

/** Recordings of the real API are not part of this repository: they lie beside it, if at all. */
const folder =
  process.env["BERTH_PVE_RECORDINGS"] ?? join(repository, "..", "shared", "pve-recordings");
const isThere = existsSync(join(folder, "replay.mjs"));
const skip = isThere ? false : "the recordings of the Proxmox API are not on this machine";

describe("the simulator against recordings of the real Proxmox API", { concurrency: true }, () => {
  for (const release of releases) {
    test(`${release}: every status, reason, body and task end`, { skip }, async () => {
      const skipped = Object.keys(notYet[release]);
      const first = await replay(release, choice("--skip", skipped));
      assert.ok(countIn(first, "steps") > 800, `the scenarios ran:\n${first}`);
      if (countIn(first, "mismatches") === 0) return;
      // A broadcast in the middle of a create shows the husk in a list, here as on a real cluster:
      // what differs has a second try, which an error of the model fails too.
      const again = await replay(release, choice("--only", scenariosIn(first)));
      assert.equal(countIn(again, "mismatches"), 0, `${first}\n${again}`);
    });
  }
});

function countIn(output: string, what: "steps" | "mismatches"): number {
  return Number(new RegExp(` (\\d+) ${what}`).exec(output)?.[1] ?? Number.NaN);
}

/** The scenarios that a replay complained about: each line begins with one. */
function scenariosIn(output: string): string[] {
  return [...new Set([...output.matchAll(/^([a-z0-9-]+)(?: #|:)/gm)].map(([, name = ""]) => name))];
}

function choice(flag: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [flag, names.join(",")];
}

async function replay(release: Release, chosen: readonly string[]): Promise<string> {
  const simulator = await startProxmoxSimulator({
    port: 0,
    version: release,
    nodes: ["pve1"],
    clock: systemClock,
    random: systemRandom,
    hooks: true,
    // The order of things is what counts here: small times leave room on a slow machine.
    timing: { stepMs: 2, allocateMs: 20, startMs: 50, stopMs: 20, refusalMs: 50 },
  });
  try {
    const target = ["--base", simulator.url, "--node", "pve1", "--release", release];
    const token = `root@pam!t=${simulator.tokenSecret}`;
    const credentials = ["--token", token, "--password", simulator.password];
    // The replayer serves files for download-url on a port of its own.
    const [port = 0] = await freePorts(1);
    const files = ["--dir", folder, "--files-port", String(port)];
    const script = join(folder, "replay.mjs");
    return await run([script, ...target, ...credentials, ...files, "--jobs", "4", ...chosen]);
  } finally {
    await simulator.close();
  }
}

function run(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString("utf8")));
    child.on("error", reject);
    child.on("close", () => resolve(output));
  });
}
