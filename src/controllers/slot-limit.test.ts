import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hypervisor } from "../api/index.ts";
import { slotLimit } from "./slot-limit.ts";

const spec = {
  slots: { hypervisor: 16, node: 4, storage: 1 },
  storages: [{ name: "fast", slots: 3 }],
};
// cast: only these parts of a Hypervisor say how much may happen at once.
const lab = { spec } as unknown as Hypervisor;
const find = (name: string): Hypervisor | undefined => (name === "lab" ? lab : undefined);

test("slots have the limits that the Hypervisor says, a node's own storage on each node", () => {
  const limits = [
    "hypervisor lab",
    "begin lab",
    "node pve1 of lab",
    "storage slow of lab",
    "storage fast of lab",
    "storage fast on pve1 of lab",
    "storage slow on pve1 of lab",
    "storage fast of gone",
  ].map((name) => slotLimit(name, find));
  assert.deepEqual(limits, [16, 32, 4, 1, 3, 3, 1, 1]);
});
