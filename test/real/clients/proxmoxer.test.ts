import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { findPython } from "../../../scripts/real/proxmoxer.ts";
import "../support/cleanup.ts";
import { type Ground, prepareGround, releases, vmids, volumesOf } from "./support.ts";

const program = join(import.meta.dirname, "stories.py");
const vmid = 130;

/** In their order: each goes on where the one before it ended. */
const stories: readonly (readonly [string, string])[] = [
  ["logs_in", "it logs in by password, and renews its ticket"],
  ["looks", "it lists nodes, storages and VMs by token"],
  ["uploads", "it uploads a disc"],
  ["creates", "it creates a VM with disk, disc and cloud-init drive"],
  ["changes", "it changes the VM under its digest, enlarges a disk, adds one and removes it"],
  ["snapshots", "it takes a snapshot, rolls back to it and removes it"],
  ["powers", "it starts and stops the VM, and finds the tasks"],
  ["clones", "it clones the VM"],
  ["destroys", "it destroys the VM and the disc"],
  ["fails", "failures reach it as the real ones do"],
];

for (const release of releases) {
  test(`proxmoxer works against ${release}`, async (t) => {
    const python = findPython();
    assert.ok(python, "no python3 has proxmoxer");
    const ground = await prepareGround(t, release);
    for (const [story, sentence] of stories) {
      await t.test(sentence, () => run(python, story, ground));
    }
    await t.test("nothing of it is left", async () => {
      assert.deepEqual(await vmids(ground), []);
      assert.deepEqual(await volumesOf(ground, vmid), []);
    });
  });
}

function run(python: string, story: string, { simulator, release, caFile, image }: Ground): void {
  const { hostname: host, port } = new URL(simulator.url);
  const { user, password, tokenId, tokenSecret } = simulator;
  const given = { host, port, user, password, tokenId, tokenSecret, caFile, image, release, vmid };
  const input = JSON.stringify(given);
  const ran = spawnSync(python, [program, story], { input, encoding: "utf8", timeout: 60_000 });
  assert.equal(ran.status, 0, ran.stderr);
}
