import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Leftover, Machine, SeenVolume } from "../../hypervisor/index.ts";
import { claim, declared, gib, machine, volume } from "./fixture.ts";
import type { Next, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";
import { namedVolumes } from "./plan-claim.ts";
import { isOwnDisk, judgeVolume, mayGoWithVm } from "./volume-ownership.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

const known: ClaimVolume = {
  ...volume,
  state: "Attached",
  onDelete: "Delete",
  size: String(10 * gib),
  proof: "Config",
};
const here: SeenVolume = { ...volume, state: "Attached", sizeBytes: 10 * gib, isOwn: true };
/** What is in the place of the disk root, and is not the recorded volume. */
const other: SeenVolume = { ...here, id: "store:other" };
const unused: SeenVolume = {
  id: known.id,
  role: "Disk",
  storage: "store",
  state: "Detached",
  isOwn: true,
};

interface Given {
  readonly on?: Partial<Machine>;
  readonly of?: Partial<ClaimSpec>;
  readonly seen?: SeenVolume;
  readonly leftovers?: readonly Leftover[];
  readonly grounds?: Pick<PlanInput, "lastDone" | "doneBefore" | "open">;
}

function judged({ on, of, seen = other, leftovers = [], grounds }: Given): string {
  const at = { claim: { ...claim, ...of }, machine: { ...machine, volumes: [seen], ...on } };
  const judgement = judgeVolume({ leftovers, ...grounds }, at, seen);
  return judgement.is === "Ours" ? `${judgement.is} ${judgement.proof}` : judgement.is;
}

function listed(id: string): Leftover {
  return { volume: id, storage: "store", node: "n1", sizeBytes: 10 * gib, proof: "Claimed" };
}

describe("a volume in the place of a disk of ours", () => {
  it("is ours where the recorded one is gone and it is as large: somebody renamed it", () => {
    assert.equal(judged({}), "Ours Followed");
    const grows = { volumes: [{ ...known, growsTo: String(11 * gib) }] };
    const larger = { ...other, sizeBytes: 11 * gib };
    assert.equal(judged({ seen: larger, of: grows }), "Ours Followed");
    assert.equal(judged({ seen: larger }), "Strange", "a rename does not change the size");
  });

  it("is a person's for good once it was one, also when the recorded one is gone", () => {
    assert.equal(judged({ of: { otherVolumes: [{ id: other.id }] } }), "Strange");
  });

  it("is a person's while the VM still has the recorded one, as unused", () => {
    assert.equal(judged({ on: { volumes: [other, unused] } }), "Strange");
  });

  it("is a person's while a list shows the recorded one", () => {
    assert.equal(judged({ leftovers: [listed(known.id)] }), "Strange");
  });

  it("is a person's while snapshots may refer to the recorded one", () => {
    assert.equal(judged({ on: { hasSnapshots: true } }), "Strange");
  });

  it("is a person's where it is smaller than the recorded one", () => {
    assert.equal(judged({ seen: { ...other, sizeBytes: 9 * gib } }), "Strange");
  });

  it("is a person's before Berth has made that disk", () => {
    assert.equal(judged({ of: { volumes: [], expectedDisks: ["root"] } }), "Strange");
    assert.equal(judged({ of: { volumes: [] } }), "Unproven");
  });

  it("is a person's where Berth itself may have destroyed the recorded one", () => {
    const at = {
      claim: { ...claim, volumes: [{ ...known, state: "Detached" as const }] },
      machine: { ...machine, volumes: [other] },
    };
    assert.equal(judgeVolume({ leftovers: [], absentDisks: ["root"] }, at, other).is, "Strange");
    assert.equal(judgeVolume({ leftovers: [] }, at, other).is, "Ours");
  });

  it("is in doubt before the storages were listed", () => {
    const at = { claim, machine: { ...machine, volumes: [other] } };
    assert.equal(judgeVolume({}, at, other).is, "InDoubt");
    assert.equal(
      judgeVolume({ leftovers: [], open: { step: "Grow", intent: "" } }, at, other).is,
      "InDoubt",
    );
  });

  it("is what an operation made only where that was asked for this disk", () => {
    const asked = { operation: "o1", node: "n1", storage: "store", since: "", complete: true };
    const allocation = { ...asked, listed: [], disk: "data" };
    const of = { volumes: [], expectedDisks: ["root"], allocation };
    assert.equal(judged({ of, grounds: done }), "Strange");
    const own = { ...of, allocation: { ...allocation, disk: "root" } };
    assert.equal(judged({ of: own, grounds: done }), "Ours Config");
    const named = { ...allocation, disk: "root", volume: "store:vm-100-berth-1" };
    assert.equal(judged({ of: { ...of, allocation: named } }), "Strange");
    const named2 = { ...named, volume: other.id };
    assert.equal(judged({ of: { ...of, allocation: named2 } }), "Ours Named");
    const made = [{ ...known, madeBy: "o1" }];
    const again = { ...of, volumes: made, allocation: { ...allocation, disk: "root" } };
    assert.equal(judged({ of: again, on: { volumes: [other, unused] } }), "Strange");
  });

  const allocated = {
    operation: "o1",
    node: "n1",
    storage: "store",
    since: "",
    complete: true,
    listed: [],
    disk: "root",
    size: String(10 * gib),
  };
  const open = { volumes: [], expectedDisks: ["root"], allocation: allocated };
  const done = { lastDone: { id: "o1", step: "AddDisk" } };

  it("is what an operation made only where that ended well", () => {
    assert.equal(judged({ of: open, grounds: done }), "Ours Config");
    const other1 = { lastDone: { id: "o0", step: "Configure" } };
    assert.equal(judged({ of: open, grounds: other1 }), "Ours Followed");
    const grounds = { doneBefore: { step: "Clone" } };
    assert.equal(judged({ of: open, grounds }), "Ours Followed");
    const cloned = { ...open, allocation: { ...allocated, source: "900" } };
    assert.equal(judged({ of: cloned, grounds }), "Ours Config");
    const running = { open: { step: "AddDisk", intent: "" } };
    assert.equal(judged({ of: open, grounds: running }), "InDoubt");
  });

  it("is what an operation made only where it is as large as that was asked for", () => {
    const sized = (sizeBytes: number): string => {
      return judged({ of: open, grounds: done, seen: { ...other, sizeBytes } });
    };
    assert.equal(sized(10 * gib + 4 * 1024 ** 2), "Ours Config", "LVM rounds up to extents");
    assert.equal(sized(50 * gib), "Strange");
    assert.equal(sized(9 * gib), "Strange");
  });

  it("is what an operation made only where no other new one is in the VM, as unused", () => {
    const loose = { ...unused, id: "store:new" };
    const on = { volumes: [other, loose] };
    assert.equal(judged({ of: open, grounds: done, on }), "Strange");
    const listed1 = { ...open, allocation: { ...allocated, listed: [loose.id] } };
    assert.equal(judged({ of: listed1, grounds: done, on }), "Ours Config");
  });

  it("is a person's in a VM that was created just now: that has no disks", () => {
    const of: Partial<ClaimSpec> = { volumes: [], state: "Reserved", everExisted: false };
    assert.equal(judged({ of, grounds: { lastDone: { id: "o1", step: "Create" } } }), "Strange");
  });

  it("is what the marker of an adopted VM names; of a lost Claim it is only followed", () => {
    const of: Partial<ClaimSpec> = { volumes: [], state: "Reserved", everExisted: true };
    assert.equal(judged({ of: { ...of, origin: "Adopted" } }), "Ours Config");
    assert.equal(judged({ of: { ...of, origin: "Created" } }), "Ours Followed");
  });

  it("is not what a migration of ours renamed while the VM has the recorded one as unused", () => {
    const grounds = { lastDone: { id: "o2", step: "Migrate" } };
    const on = { node: "n2", volumes: [other] };
    assert.equal(judged({ grounds, on }), "Ours Followed");
    assert.equal(judged({ grounds, on: { ...on, volumes: [other, unused] } }), "Strange");
  });
});

describe("a volume that goes with its VM", () => {
  const going = (entry: Partial<ClaimVolume>, seen: SeenVolume): boolean => {
    return mayGoWithVm({ ...claim, volumes: [{ ...known, ...entry }] }, seen);
  };

  it("is proven ours, and still has the size that was recorded", () => {
    assert.ok(going({}, here));
    assert.ok(going({}, { ...here, sizeBytes: 11 * gib }), "a person has made it larger");
    assert.ok(!going({}, { ...here, sizeBytes: 9 * gib }));
    const { disk: _disk, ...elsewhere } = here;
    assert.ok(going({}, elsewhere));
    assert.ok(!going({}, { ...elsewhere, sizeBytes: 11 * gib }), "its name was used again");
    const grown = { ...known, growsTo: String(11 * gib) };
    const isGoing = (sizeBytes: number): boolean => {
      return mayGoWithVm({ ...claim, volumes: [grown] }, { ...elsewhere, sizeBytes });
    };
    assert.ok(isGoing(11 * gib), "an operation was to make it larger");
    assert.ok(!isGoing(12 * gib));
  });

  it("is not one that nothing proves to be ours", () => {
    const { proof: _proof, ...unproven } = known;
    assert.ok(!mayGoWithVm({ ...claim, volumes: [unproven] }, here));
  });

  it("is no firmware or TPM volume that nothing proves, or that has another size now", () => {
    for (const role of ["Firmware", "TPM"] as const) {
      const { disk: _disk, onDelete: _onDelete, ...rest } = known;
      const small = { ...rest, role, size: String(2 ** 20) };
      const seen: SeenVolume = { ...unused, role, state: "Attached", sizeBytes: 2 ** 20 };
      const going2 = (entry: Partial<ClaimVolume>, one: SeenVolume): boolean => {
        return mayGoWithVm({ ...claim, volumes: [{ ...small, ...entry }] }, one);
      };
      assert.ok(going2({}, seen));
      assert.ok(!going2({}, { ...seen, sizeBytes: 50 * gib }));
      assert.ok(!going2({}, { ...seen, role: "Disk", sizeBytes: 50 * gib }));
      const { proof: _proof, ...unproven } = small;
      assert.ok(!mayGoWithVm({ ...claim, volumes: [unproven] }, seen));
    }
  });

  it("is saved memory by its key, and not by what the Claim says of another disk", () => {
    const saved = { id: known.id, role: "State", state: "Attached" } as const;
    const at = { ...claim, volumes: [saved] };
    assert.ok(mayGoWithVm(at, { ...unused, role: "State" }));
    assert.ok(!mayGoWithVm(at, unused));
  });

  it("is not one that somebody renamed or moved: that may be a person's", () => {
    const followed = { ...known, proof: "Followed" } as const;
    assert.ok(!mayGoWithVm({ ...claim, volumes: [followed] }, here));
    assert.ok(isOwnDisk(followed, here), "it is kept under its name");
    const copied = { ...here, id: "store:copy" };
    const allocation = {
      operation: "o1",
      node: "n1",
      storage: "store",
      disk: "root",
      since: "",
      complete: true,
      listed: [],
    };
    const moved = { ...claim, volumes: [followed], allocation };
    const seen = { at: "ours", machine: { ...machine, volumes: [copied] } } as const;
    const lastDone = { id: "o1", step: "MoveDisk" };
    const next = planVm({ declared, claim: moved, seen, nowMs: 0, lastDone });
    assert(next.do === "record");
    assert.equal(next.change.volumes?.find(({ id }) => id === copied.id)?.proof, "Followed");
  });

  it("is kept under the name of its disk only where it is that disk", () => {
    const { proof: _proof, ...unproven } = known;
    assert.ok(isOwnDisk(known, here));
    assert.ok(!isOwnDisk(unproven, here));
    assert.ok(!isOwnDisk(known, { ...here, sizeBytes: 9 * gib }));
  });

  it("is not added for a VM without an object because of its place", () => {
    const at = { ...machine, volumes: [other, unused] };
    assert.deepEqual(
      namedVolumes(claim, at, []).map(({ id }) => id),
      [known.id],
    );
    const bound = namedVolumes({ ...claim, volumes: [] }, at, []);
    assert.deepEqual(bound, [], "a Claim without volumes is not one from the marker");
    const bare = namedVolumes({ ...claim, state: "Reserved", volumes: [] }, at, []);
    assert.deepEqual(
      bare.map(({ id, proof }) => [id, proof]),
      [[other.id, "Recorded"]],
    );
  });
});

describe("the plan for a VM with a volume that is not Berth's", () => {
  const slot = machine.disks.map((disk) => ({ ...disk, volume: other.id }));
  /** What is planned once it is recorded that it is a person's. */
  const planned = (more: Partial<PlanInput>, on: Partial<Machine>): Next => {
    const seen = { at: "ours", machine: { ...machine, disks: slot, ...on } } as const;
    const input = { declared, claim, seen, nowMs: 0, ...more };
    const next = planVm(input);
    if (next.do !== "record" || next.change.otherVolumes === undefined) return next;
    return planVm({ ...input, claim: { ...(input.claim ?? claim), ...next.change } });
  };

  it("looks for the recorded one, and touches no disk while nobody can tell", () => {
    const grown = declared.disks.map((disk) => ({ ...disk, sizeBytes: 20 * gib }));
    const input = { declared: { ...declared, disks: grown, isEdited: true } };
    const on = { volumes: [other] };
    assert.deepEqual(planned(input, on), { do: "sweep", mayFail: true });
    assert.equal(planned({ ...input, isUnlisted: true }, on).do, "rest");
  });

  it("fails, and does not detach, grow or attach anything", () => {
    const next = planned({ leftovers: [listed(known.id)] }, { volumes: [other] });
    assert(next.do === "fail" && next.failure.message.includes(other.id));
    const gone = { ...declared, disks: [] };
    const left = planned({ declared: gone, leftovers: [listed(known.id)] }, { volumes: [other] });
    assert.notEqual(left.do, "step", "a person's volume is not detached");
  });

  it("does not destroy the recorded one beside it: then it would pass for that one", () => {
    const absent = { ...declared, disks: [], absentDisks: ["root"] };
    const since = "2026-01-02T03:00:00Z";
    const away = { ...claim, volumes: [{ ...known, state: "Detached" as const, since }] };
    const next = planned({ declared: absent, claim: away }, { volumes: [other, unused] });
    assert(next.do === "fail" && next.failure.message.includes(other.id));
    const alone = { volumes: [unused], disks: [] };
    assert.equal(planned({ declared: absent, claim: away }, alone).do, "step");
  });

  it("keeps the place of a disk whose volume was renamed: the first one is booted from", () => {
    const data = { ...known, id: "store:data", disk: "data" };
    const seenData = { ...here, id: "store:data", disk: "data" };
    const next = planned(
      { claim: { ...claim, volumes: [known, data] }, leftovers: [] },
      { volumes: [seenData, other] },
    );
    assert(next.do === "record");
    assert.deepEqual(
      next.change.volumes?.map(({ id }) => id),
      [other.id, data.id],
    );
  });

  it("does not forget the recorded one for it", () => {
    const next = planned({ leftovers: [] }, { volumes: [{ ...other, sizeBytes: 1 }] });
    assert.equal(next.do, "fail");
  });

  it("says where the recorded one is, in another slot or in another disk's place", () => {
    const { disk: _disk, ...elsewhere } = here;
    const moved = planned({}, { volumes: [elsewhere] });
    assert(moved.do === "fail" && moved.failure.message.includes("second time"));
    const away = { ...known, state: "Detached", since: "2026-01-02T03:00:00Z" } as const;
    const swapped = [{ ...known, id: other.id, disk: "data" }, away];
    const next = planned({ claim: { ...claim, volumes: swapped } }, { volumes: [other, unused] });
    assert(next.do === "fail" && next.failure.message.includes("of the disk data"));
  });
});
