import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Leftover, Machine } from "../../hypervisor/index.ts";
import { claim, declared, machine, volume } from "./fixture.ts";
import type { Next, PlanInput } from "./next.ts";
import { planVmGoneVolumes } from "./plan-gone-volumes.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

const root: ClaimVolume = { ...volume, state: "Attached", onDelete: "Delete" };
const old: ClaimVolume = { ...root, id: "store:old" };
const data: ClaimVolume = { ...root, id: "store:data", disk: "data" };

interface Given extends Partial<Omit<PlanInput, "claim">> {
  readonly volumes: readonly ClaimVolume[];
  readonly on?: Partial<Machine>;
}

function next({ volumes, on = {}, ...more }: Given): Next | undefined {
  const spec = { ...claim, volumes: [...volumes] };
  const seen = { ...machine, ...on };
  const input = { declared, nowMs: 0, ...more, claim: spec, seen: { at: "ours", machine: seen } };
  // cast: what is seen is a VM of ours, whatever the type of the literal says.
  return planVmGoneVolumes(input as PlanInput, spec, seen);
}

/** The ids of the volumes that the Claim is left with. */
function left(given: Given): string[] | undefined {
  const found = next({ leftovers: [], ...given });
  return found?.do === "record" ? found.change.volumes?.map(({ id }) => id) : undefined;
}

function listed(id: string): Leftover {
  return { volume: id, storage: "store", node: "n1", sizeBytes: 1, proof: "Claimed" };
}

describe("a volume that the VM does not refer to", () => {
  it("is looked for where another one is in its place, which may fail", () => {
    assert.deepEqual(next({ volumes: [old, root] }), { do: "sweep", mayFail: true });
    assert.equal(next({ volumes: [old, root], isUnlisted: true }), undefined);
  });

  it("is forgotten where no list shows it, and its place is its successor's", () => {
    assert.deepEqual(left({ volumes: [old, root] }), ["store:root"]);
    const both = [root, data].map((one) => ({ ...one, storage: "store", isOwn: true }));
    const seen = { volumes: both };
    assert.deepEqual(left({ volumes: [old, data, root], on: seen }), ["store:root", "store:data"]);
  });

  it("stays where what is in its place is not ours", () => {
    assert.equal(left({ volumes: [old] }), undefined);
  });

  it("stays while a list shows it", () => {
    assert.equal(left({ volumes: [old, root], leftovers: [listed("store:old")] }), undefined);
  });

  it("stays while something is under way, and where there are snapshots", () => {
    const open = { step: "MoveDisk", intent: "Move the disk root." } as const;
    assert.equal(next({ volumes: [old, root], open }), undefined);
    assert.equal(next({ volumes: [old, root], on: { hasSnapshots: true } }), undefined);
  });

  it("is forgotten where no spec asks for its disk, unless it has to stay", () => {
    assert.deepEqual(left({ volumes: [root, data] }), ["store:root"]);
    assert.equal(left({ volumes: [root, { ...data, onDelete: "Retain" }] }), undefined);
  });

  it("is missed where a spec asks for its disk, and so it stays", () => {
    const disks = [...declared.disks, { ...declared.disks[0], name: "data" }];
    // cast: the first disk of the fixture is there.
    const asked = { ...declared, disks } as PlanInput["declared"];
    assert.equal(left({ volumes: [root, data], declared: asked }), undefined);
    const absent = { ...declared, absentDisks: ["data"] };
    assert.equal(left({ volumes: [root, data], declared: absent }), undefined);
    const going = { ...declared, isDeleting: true };
    assert.equal(left({ volumes: [root, data], declared: going }), undefined);
  });

  it("is expected from a disk-holder VM where it has no disk's name, and so it stays", () => {
    const { disk: _disk, ...expected } = { ...data, onDelete: "Retain" } as const;
    assert.equal(left({ volumes: [root, expected] }), undefined);
  });

  it("stays where what has its disk's name is not in its place", () => {
    const detached = { ...root, storage: "store", isOwn: true, state: "Detached" } as const;
    assert.equal(left({ volumes: [old, root], on: { volumes: [detached] } }), undefined);
  });
});
