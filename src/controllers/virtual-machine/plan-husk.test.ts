import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Seen } from "../../hypervisor/index.ts";
import type { Declared, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";

const declared: Declared = {
  isDeleting: false,
  fate: "Destroy",
  isProtected: false,
  shape: { name: "web" },
  disks: [],
  onDelete: {},
  node: "n1",
  power: "Running",
  shutdown: { graceSeconds: 60, force: true },
  updatePolicy: "Live",
  driftPolicy: "Correct",
  onMissing: "Stall",
  wantsRestart: false,
  isEdited: false,
};

const claim: ClaimSpec = {
  hypervisor: { name: "hv", systemId: "s" },
  externalId: "100",
  idChosenBy: "Berth",
  state: "Reserved",
  role: "Machine",
  origin: "Created",
  everStood: false,
  identity: "i",
  installation: "in",
  owner: { namespace: "default", name: "web", uid: "u" },
  node: "n1",
  volumes: [],
};

const lock = { kind: "Create", state: "Dead", detail: "create", remedy: "qm unlock 100" } as const;

const sights: Readonly<Record<string, Seen>> = {
  "one whose task is dead": { at: "opaque", node: "n1", lock },
  "one of which nothing proves whose it is": { at: "foreign", reason: "Husk", detail: "no task" },
};

for (const [name, seen] of Object.entries(sights)) {
  describe(`an empty reservation: ${name}`, () => {
    const input: PlanInput = { declared, claim, seen, nowMs: 0 };

    test("is left for another id while few were", () => {
      const next = planVm({ ...input, husksLeft: 2 });
      assert.equal(next.do === "moveOn" && next.leaves, "Husk");
    });

    test("is the last one where three were left before, and a person is asked", () => {
      const next = planVm({ ...input, husksLeft: 3 });
      assert.equal(next.do === "fail" && next.failure.category, "LockError");
      assert.match(next.do === "fail" ? next.failure.message : "", / 3 ids were given up /);
    });
  });
}

test("a stranger under the id leaves nothing behind: another id is tried, however many were", () => {
  const seen = { at: "foreign", reason: "Stranger", detail: "somebody's" } as const;
  const next = planVm({ declared, claim, seen, nowMs: 0, husksLeft: 3 });
  assert.equal(next.do === "moveOn" && next.leaves, "Nothing");
});
