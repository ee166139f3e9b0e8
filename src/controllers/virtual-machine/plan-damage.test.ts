import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { ForeignReason, Lock, Machine, Seen } from "../../hypervisor/index.ts";
import { claim, declared, machine, reserved } from "./fixture.ts";
import type { Next, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";

// Each test names the damage that its guard prevents.

const open = { step: "Create", intent: "Create the VM 100 on node n1." };
const leaving = { ...declared, isDeleting: true, shape: {}, disks: [] };
const dead: Lock = { kind: "Create", detail: "create", state: "Dead", remedy: "qm unlock 100" };

function planned(input: Partial<PlanInput>): Next {
  return planVm({ declared, claim, seen: ours(), nowMs: 1000, ...input });
}

/** What is done to the hypervisor or to the ledger; the empty text where nothing is. */
function act(next: Next): string {
  if (next.do === "step") return next.step.name;
  return next.do === "wait" || next.do === "fail" ? "" : next.do;
}

function ours(change: Partial<Machine> = {}): Seen {
  return { at: "ours", machine: { ...machine, ...change } };
}

function foreign(reason: ForeignReason, change: Partial<Machine> = {}): Seen {
  const { mark: _, ...bare } = machine;
  return { at: "foreign", reason, detail: "", machine: { ...bare, identity: "i", ...change } };
}

describe("while a request may still arrive", () => {
  it("its placeholder VM is not given up: the VM would be created twice", () => {
    const seen: Seen = { at: "opaque", node: "n1", lock: dead };
    assert.equal(act(planned({ claim: reserved, seen })), "moveOn");
    assert.equal(act(planned({ claim: reserved, seen, open })), "");
  });

  it("its id is not given up for a stranger's: the VM would be created twice", () => {
    const seen = foreign("Stranger");
    assert.equal(act(planned({ claim: reserved, seen })), "moveOn");
    assert.equal(act(planned({ claim: reserved, seen, open })), "");
  });

  it("a suspended VM is not released: the request would change what is nobody's", () => {
    const input = {
      declared: { ...leaving, fate: "Retain" },
      seen: ours({ power: "Suspended" }),
      leftovers: [],
    } as const;
    assert.equal(act(planned(input)), "finish");
    assert.equal(act(planned({ ...input, open })), "");
  });

  it("a VM is not destroyed before the disk-holder VM came that was to take its disks", () => {
    const input = {
      declared: leaving,
      claim: { ...claim, diskHolder: { externalId: "777", identity: "k" } },
      seen: ours({ power: "Stopped" }),
      leftovers: [],
    } as const;
    const coming = { step: "CreateDiskHolder", intent: "Create the disk-holder VM 777." };
    assert.equal(act(planned(input)), "Destroy");
    assert.notEqual(act(planned({ ...input, open: coming })), "Destroy");
  });
});

describe("a VM that is taken over", () => {
  const taking: ClaimSpec = { ...reserved, everExisted: true, origin: "Adopted", identity: "i" };

  it("is one that nobody has", () => {
    assert.equal(act(planned({ claim: taking, seen: foreign("Stranger") })), "Adopt");
  });

  it("is not one of another installation", () => {
    assert.equal(act(planned({ claim: taking, seen: foreign("OtherInstallation") })), "");
  });

  it("is not another VM than the one that its Claim means", () => {
    const seen = foreign("Stranger", { identity: "another" });
    assert.equal(act(planned({ claim: taking, seen })), "");
  });
});

describe("a VM whose marker is gone", () => {
  it("is not taken for ours before a person has approved exactly that", () => {
    const seen = foreign("MarkLost");
    const asked = planned({ seen });
    const hash = asked.do === "fail" ? asked.plan?.hash : undefined;
    assert.ok(hash !== undefined);
    assert.equal(act(asked), "");
    assert.equal(act(planned({ seen, approved: "another plan" })), "");
    assert.equal(act(planned({ seen, approved: hash })), "WriteMarker");
  });
});

describe("a protection that somebody set on the hypervisor", () => {
  const seen = ours({ power: "Stopped", shape: { ...machine.shape, deletionProtection: true } });

  it("is not lifted unless the object says so", () => {
    assert.equal(act(planned({ declared: leaving, seen })), "");
    const lifting = { ...leaving, liftsProtection: true };
    assert.equal(act(planned({ declared: lifting, seen })), "Configure");
  });
});

describe("a disk whose entry says Absent", () => {
  const absent = { ...declared, disks: [], absentDisks: ["root"], onDelete: { root: "Delete" } };
  const input = { declared: absent as typeof declared, seen: ours({ power: "Stopped" }) };

  it("is destroyed where a spec has named it", () => {
    assert.equal(act(planned(input)), "DestroyDisk");
  });

  it("is not destroyed where no spec of this ledger ever named it: a backup may be older", () => {
    const [volume] = claim.volumes ?? [];
    assert.ok(volume);
    const { onDelete: _, ...unsaid } = volume;
    const older = { ...claim, volumes: [unsaid] };
    assert.notEqual(act(planned({ ...input, claim: older })), "DestroyDisk");
  });

  it("waits for the restart with which it leaves, also from a slot that people chose", () => {
    const { disk: _disk, ...elsewhere } = machine.volumes[0] ?? {};
    const volumes = [elsewhere] as Machine["volumes"];
    const { name: _name, ...disk } = machine.disks[0] ?? {};
    const attached = { volumes, disks: [{ ...disk, slot: "d8" }] as Machine["disks"] };
    assert.equal(act(planned({ ...input, seen: ours(attached) })), "DestroyDisk");
    const left = { volumes, disks: [], pending: ["d8"] };
    assert.notEqual(act(planned({ ...input, seen: ours(left) })), "DestroyDisk");
    assert.equal(act(planned({ ...input, seen: ours({ ...left, pending: [] }) })), "DestroyDisk");
  });
});

describe("the ISO of the first boot", () => {
  const identity = "00000000-0000-4000-8000-00000000f00d";
  const fileName = `berth-seed-${identity}-0123456789abcdef.iso`;
  const seed = { state: "Inserted", storage: "s", fileName } as const;
  const shape = { ...machine.shape, cloudInit: { seed } };
  const input = {
    claim: { ...claim, identity },
    seen: ours({ shape, uptimeSeconds: 60 }),
  };

  it("is ejected when the guest has read it", () => {
    assert.equal(act(planned({ ...input, hasAgentAnswered: true })), "EjectSeed");
  });

  it("is not ejected before: the guest would come up without its users and addresses", () => {
    assert.notEqual(act(planned(input)), "EjectSeed");
  });
});

describe("a disk-holder VM that once existed and is gone", () => {
  it("is not created again, empty, under the Claim that says what it held", () => {
    const holder: ClaimSpec = { ...claim, externalId: "777", role: "DiskHolder", volumes: [] };
    const input = {
      declared: { ...leaving, onDelete: { root: "Retain" } as const },
      claim: { ...claim, volumes: [{ ...claim.volumes?.[0], onDelete: "Retain" }] } as ClaimSpec,
      seen: ours({ power: "Stopped" }),
      leftovers: [],
    };
    const keeper = { claim: holder, seen: { at: "absent" } as const };
    assert.equal(act(planned({ ...input, keeper })), "dropKeeper");
    const never = { ...keeper, claim: { ...holder, everExisted: false } };
    assert.equal(act(planned({ ...input, keeper: never })), "CreateDiskHolder");
  });
});
