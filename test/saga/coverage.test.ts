import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { undisturbed } from "../../src/controllers/testing/saga.ts";
import type { Operation } from "../../src/hypervisor/index.ts";
import * as sagas from "./sagas.ts";

/** Struck in a saga, or tried by the tests of this file. One without a line does not compile. */
const triedBy: Record<Operation["kind"], "sagas" | `src/${string}.test.ts`> = {
  create: "sagas",
  clone: "sagas",
  addDisk: "sagas",
  attach: "sagas",
  detach: "sagas",
  destroyDisk: "sagas",
  moveDisk: "sagas",
  handOver: "sagas",
  grow: "sagas",
  configure: "sagas",
  stamp: "sagas",
  release: "sagas",
  powerOn: "sagas",
  powerOff: "sagas",
  reboot: "sagas",
  suspend: "sagas",
  resume: "sagas",
  migrate: "sagas",
  guard: "sagas",
  regroup: "sagas",
  destroy: "sagas",
  removeVolume: "src/drivers/proxmox/operations/hand-over.test.ts",
  discardVolume: "src/drivers/proxmox/operations/discard.test.ts",
  unlock: "sagas",
  clearHusk: "sagas",
  putSeed: "sagas",
  removeSeed: "sagas",
  fetchImage: "sagas",
  putImage: "sagas",
  removeImage: "sagas",
};

test("every operation is struck in a saga, or it is said where else it is", async () => {
  const struck = new Set<string>();
  for (const saga of Object.values(sagas)) {
    for (const operation of (await undisturbed(saga)).operations) struck.add(operation);
  }
  const expected = Object.entries(triedBy).flatMap(([kind, by]) => (by === "sagas" ? kind : []));
  assert.deepEqual([...struck].toSorted(), expected.toSorted());
  for (const [kind, by] of Object.entries(triedBy)) {
    if (by === "sagas") continue;
    const tests = readFileSync(join(import.meta.dirname, "..", "..", by), "utf8");
    assert.match(tests, new RegExp(`"${kind}"`), `${by} does not try ${kind}`);
  }
});
