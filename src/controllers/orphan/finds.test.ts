import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../api/index.ts";
import type { Lock, Seen, Survey, SurveyedMachine } from "../../hypervisor/index.ts";
import { huskFind, machineFind } from "./evidence.ts";
import { claimsLetGo, planFinds, type SweepInput } from "./plan.ts";
import { planSightings } from "./sightings.ts";

const identity = "00000000-0000-4000-8000-00000000f00d";
const claim = {
  metadata: { name: "c-1" },
  spec: {
    state: "Bound",
    role: "VM",
    externalId: "200",
    everExisted: true,
    identity,
    owner: { namespace: "default", name: "web", uid: "u" },
  },
} as unknown as Claim;
const machine: SurveyedMachine = {
  externalId: "200",
  node: "n1",
  content: "Machine",
  power: "Stopped",
};
const survey: Survey = {
  machines: [],
  volumes: [],
  files: [],
  nodes: ["n1"],
  storages: ["s"],
  missing: [],
};

function input(change: Partial<SweepInput>): SweepInput {
  return {
    survey,
    installation: "i",
    claims: [claim],
    isDeclared: () => true,
    identities: new Set(),
    seen: new Map(),
    imageFiles: new Set(),
    taken: new Set(),
    blocked: new Map(),
    mayUnlock: true,
    ...change,
  };
}

describe("what may be destroyed of what nothing declares", () => {
  it("is no VM that somebody works on", () => {
    const lock: Lock = { kind: "Backup", detail: "backup", state: "Held" };
    const may = (held: Lock | undefined): readonly string[] => {
      return machineFind(machine, { ownership: "Ours", claim, lock: held }).allowed;
    };
    assert.ok(may(undefined).includes("Destroy"));
    assert.equal(may(lock).includes("Destroy"), false);
  });

  it("is no placeholder VM that nothing proves to be ours", () => {
    const dead: Lock = { kind: "Create", detail: "create", state: "Dead" };
    assert.ok(
      huskFind(machine, { claim, lock: dead, mayUnlock: true }).allowed.includes("Destroy"),
    );
    assert.deepEqual(huskFind(machine, { claim, mayUnlock: true }).allowed, ["Keep"]);
  });

  it("is no first-boot ISO of a VM whose object is there, whatever its status says", () => {
    const fileName = `berth-seed-${identity}-0123456789abcdef.iso`;
    const place = { storage: "s", node: "n1", isShared: false, sizeBytes: 1 };
    const file = { ...place, volume: `s:iso/${fileName}`, fileName, use: "Disc" } as const;
    const given = { survey: { ...survey, files: [file] } };
    assert.equal(planFinds(input(given)).length, 0);
    assert.equal(planFinds(input({ ...given, isDeclared: () => false })).length, 1);
  });
});

describe("a Claim whose VM bears a released marker", () => {
  it("is not taken from the object that is about to take the VM back", () => {
    const seen: Seen = { at: "foreign", reason: "Released", detail: "" };
    const given = { seen: new Map([["200", seen]]) };
    assert.equal(claimsLetGo(input(given)).length, 0);
    assert.equal(claimsLetGo(input({ ...given, isDeclared: () => false })).length, 1);
  });
});

describe("what was seen once", () => {
  it("is not reported: a list may have been read in the middle of a change", () => {
    const find = machineFind(machine, { ownership: "Ours", claim });
    const finds = new Map([["o-1", find]]);
    const first = planSightings({ finds, before: new Map(), nowMs: 0, graceMs: 0 });
    assert.deepEqual(first.due, []);
    const before = new Map([["o-1", 0]]);
    const { due } = planSightings({ finds, before, nowMs: 1, graceMs: 0 });
    assert.deepEqual(due, ["o-1"]);
  });
});
