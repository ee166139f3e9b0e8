import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { demandNothingLeft, unknownVolumes } from "./ending.ts";
import { inventoryOf } from "./inventory.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

interface Scene {
  readonly backing?: string;
  readonly name?: string;
  /** The id and the ownership of an Orphan that tells of it. */
  readonly orphan?: readonly [id: string, ownership: string];
  readonly claim?: object;
  readonly letGo?: readonly string[];
  readonly awaited?: readonly string[];
  readonly resized?: readonly string[];
  /** Names that a copy of the installation chose. */
  readonly copied?: readonly string[];
  /** Somebody's VM has the id. */
  readonly isTaken?: boolean;
}

const zfs = "pve1:rpool/data";

/** One volume of Berth's is there, and what is known of it. */
function worldOf({ backing = zfs, name = "vm-116-disk-1", ...scene }: Scene): World {
  const key = `${backing}/${name}`;
  const state = { volumes: {}, pools: [], ha: {}, guests: {}, nodes: [], storages: [] };
  const [externalId = "", ownership = ""] = scene.orphan ?? [];
  const orphan = { spec: { hypervisor: "east", externalId }, status: { ownership } };
  const claim = { metadata: {}, spec: { state: "Released", ...scene.claim } };
  const site = {
    name: "east",
    guests: new Map(scene.isTaken === true ? [["116", { by: "person" }]] : []),
    forgotten: new Set(),
    volumes: new Map([[key, { by: "berth" }]]),
    guestVolumes: () => [{ key, backing, name, vmid: "116", volume: {} }],
    text: () => undefined,
    letGo: new Set(scene.letGo),
    moves: new Set(),
    model: { cluster: { state } },
    // cast: as much of a cluster as an inventory of nothing needs.
    before: inventoryOf(state as never),
  };
  const records = {
    claims: new Map(),
    files: new Map(),
    awaited: new Set(scene.awaited),
    resized: new Set(scene.resized),
    orphans: new Map(scene.orphan === undefined ? [] : [["o", orphan]]),
    claimOf: () => (scene.claim === undefined ? undefined : claim),
  };
  const copies = [{ chosen: new Set(scene.copied) }];
  // cast: as much of a world as these laws read.
  return { sites: new Map([["east", site]]), records, copies } as unknown as World;
}

/** Whether it is a leak when nothing is declared. */
function left(scene: Scene): boolean {
  try {
    demandNothingLeft(worldOf(scene));
    return false;
  } catch (error) {
    assert(error instanceof Violation);
    return true;
  }
}

describe("a volume of Berth's that is there when nothing is declared", () => {
  const id = "local-zfs:vm-116-disk-1";

  it("is a leak unless an Orphan reports it, on ZFS, and does not call it proven", () => {
    assert.equal(left({}), true);
    assert.equal(left({ orphan: [id, "Probable"] }), false);
    assert.equal(left({ orphan: [id, "Unattributed"] }), false);
    assert.equal(left({ orphan: [id, "Ours"] }), true);
    assert.equal(left({ orphan: ["local-zfs:vm-116-disk-11", "Probable"] }), true);
  });

  it("is a leak where a log names it, whatever is reported", () => {
    const scene = { backing: "pve1:/var/lib/vz", name: "116/vm-116-disk-1.raw" };
    assert.equal(left({ ...scene, orphan: ["local:116/vm-116-disk-1.raw", "Probable"] }), true);
  });

  it("is a leak where Berth chose its name, whatever is reported, unless it came too late", () => {
    const name = "vm-116-berth-8f14e45fceea";
    const chosen = `local-zfs:${name}`;
    assert.equal(left({ name, orphan: [chosen, "Unattributed"] }), true);
    const claim = { state: "Quarantined" };
    assert.equal(left({ name, claim, orphan: [chosen, "Unattributed"] }), true);
    assert.equal(left({ name, awaited: [chosen] }), true);
    // Nobody could know of it when its Claim was given up.
    assert.equal(left({ name, awaited: [chosen], orphan: [chosen, "Unattributed"] }), false);
  });

  it("may be nobody's where it had another size than its Claim says, and an Orphan tells of it", () => {
    const name = "vm-116-berth-8f14e45fceea";
    const chosen = `local-zfs:${name}`;
    const resized = [`east ${zfs}/${name}`];
    assert.equal(left({ name, resized, orphan: [chosen, "Unattributed"] }), false);
    assert.equal(left({ name, resized, orphan: [chosen, "Ours"] }), true);
    assert.equal(left({ name, resized }), true);
  });

  it("is told by the last part of its id: a linked clone has its base before", () => {
    assert.equal(left({ orphan: ["local-zfs:base-900-disk-0/vm-116-disk-1", "Probable"] }), false);
  });

  it("may stay under a Released Claim only if that names it", () => {
    assert.equal(left({ claim: { volumes: [{ id }] } }), false);
    assert.equal(left({ claim: { volumes: [] } }), true);
  });

  it("may be nobody's if it was to stay, and an Orphan tells of it", () => {
    const letGo = [`${zfs}/vm-116-disk-1`];
    assert.equal(left({ letGo }), true);
    assert.equal(left({ letGo, orphan: [id, "Unattributed"] }), false);
  });
});

describe("a volume whose name a copy of the installation chose", () => {
  const name = "vm-116-berth-8f14e45fceea";
  const chosen = `local-zfs:${name}`;
  const scene: Scene = { name, copied: [chosen] };

  it("may be unknown while a VM has its id", () => {
    assert.deepEqual(unknownVolumes(worldOf({ ...scene, isTaken: true })), []);
    assert.equal(left({ ...scene, isTaken: true }), false);
    const other = { name, isTaken: true };
    assert.deepEqual(unknownVolumes(worldOf(other)), [`${zfs}/${name} on east`]);
    assert.equal(left(other), true);
  });

  it("or while the original holds the id", () => {
    assert.deepEqual(unknownVolumes(worldOf({ ...scene, claim: { state: "Bound" } })), []);
    const isKnown = unknownVolumes(worldOf({ ...scene, claim: { state: "Quarantined" } }));
    assert.deepEqual(isKnown, [`${zfs}/${name} on east`]);
  });

  it("is a leak when its id is free, unless an Orphan reports it", () => {
    assert.deepEqual(unknownVolumes(worldOf(scene)), [`${zfs}/${name} on east`]);
    assert.equal(left(scene), true);
    const orphan = [chosen, "Unattributed"] as const;
    assert.deepEqual(unknownVolumes(worldOf({ ...scene, orphan })), []);
    assert.equal(left({ ...scene, orphan }), false);
  });
});
