import assert from "node:assert/strict";
import { it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import type { PlanInput } from "./next.ts";
import { claimChange, withLeftovers } from "./plan-claim.ts";

it("the Claim names a leftover once, however often it was listed or named before", () => {
  const known = { id: "s:vm-1-disk-0", role: "Disk", state: "Detached" } as const;
  const row = { storage: "s", node: "n1", sizeBytes: 1, proof: "TaskLogged" } as const;
  const listed = ["s:vm-1-disk-0", "s:vm-1-disk-1", "s:vm-1-disk-1"];
  const leftovers = listed.map((volume) => ({ ...row, volume }));
  const volumes = withLeftovers({ volumes: [known] } as unknown as ClaimSpec, leftovers);
  assert.deepEqual(
    volumes?.map(({ id }) => id),
    ["s:vm-1-disk-0", "s:vm-1-disk-1"],
  );
});

it("the Claim says how a leftover is proven", () => {
  const row = { storage: "s", node: "n1", sizeBytes: 1 } as const;
  const logged = { ...row, volume: "s:vm-1-disk-1", proof: "TaskLogged" } as const;
  const named = { ...row, volume: "s:vm-1-berth-1", proof: "Named" } as const;
  const probable = { ...row, volume: "s:vm-1-disk-2", proof: "Probable" } as const;
  const volumes = withLeftovers({} as unknown as ClaimSpec, [logged, named, probable]);
  assert.deepEqual(
    volumes?.map(({ id, proof }) => [id, proof]),
    [
      [logged.volume, "TaskLog"],
      [named.volume, "Named"],
    ],
  );
});

it("a new disk that gets the name of a renamed one does not take its place as the first", () => {
  const known = { role: "Disk", state: "Attached", size: "1", proof: "Config" } as const;
  const root = { ...known, id: "s:vm-1-disk-0", disk: "root" };
  const own = { storage: "s", isOwn: true, sizeBytes: 1, state: "Attached", role: "Disk" } as const;
  const renamed = { ...own, id: "s:vm-1-disk-6", disk: "root" };
  const data = { ...own, id: root.id, disk: "data" };
  const declared = { onDelete: {}, disks: [], takes: {} };
  // cast: what the change of a Claim is made of.
  const input = { declared, nowMs: 0, leftovers: [] } as unknown as PlanInput;
  const allocation = { operation: "o1", storage: "s", disk: "data", listed: [] };
  const bound = { state: "Bound", node: "n1", volumes: [root], allocation };
  const claim = bound as unknown as ClaimSpec;
  const seen = (volumes: object[]): Machine => ({ node: "n1", volumes }) as unknown as Machine;
  const namesOf = (change: Partial<ClaimSpec> | undefined): unknown => {
    return change?.volumes?.map(({ id, disk }) => [id, disk]);
  };
  const first = claimChange(input, claim, seen([renamed]));
  const both = claimChange(input, { ...claim, ...first }, seen([renamed, data]));
  const order = [
    [renamed.id, "root"],
    [data.id, "data"],
  ];
  assert.deepEqual(namesOf(both), order);
  assert.deepEqual(namesOf(claimChange(input, claim, seen([renamed, data]))), order);
});

it("an allocation of several volumes is settled when its operation ended well, not by the first", () => {
  const allocation = { operation: "o1", storage: "s", listed: [] };
  const claim = { state: "Bound", node: "n1", allocation } as unknown as ClaimSpec;
  const firmware = { id: "s:vm-1-disk-0", storage: "s", isOwn: true, state: "Attached" };
  const machine = { node: "n1", volumes: [{ ...firmware, role: "Firmware" }] };
  // cast: what the change of a Claim is made of.
  const seen = machine as unknown as Machine;
  const declared = { onDelete: {}, disks: [], takes: {} };
  const input = { declared, nowMs: 0 } as unknown as PlanInput;
  const died = claimChange(input, claim, seen);
  assert.equal(died?.volumes?.[0]?.madeBy, "o1");
  assert.equal(died?.allocation, undefined, "a worker that died may have left the next volume");
  const other = claimChange({ ...input, lastDone: { id: "o2", step: "Grow" } }, claim, seen);
  assert.equal(other?.allocation, undefined);
  const done = claimChange({ ...input, lastDone: { id: "o1", step: "AddDisk" } }, claim, seen);
  assert.ok(done?.allocation?.settledAt !== undefined);
});

it("a name that Berth chose proves nothing once the volume was seen: people may use it again", () => {
  const volume = "s:vm-1-berth-1";
  const allocation = { operation: "o1", storage: "s", listed: [], volume };
  const claim = { state: "Bound", node: "n1", allocation } as unknown as ClaimSpec;
  const disk = { id: volume, storage: "s", isOwn: true, state: "Attached", disk: "data" };
  const declared = { onDelete: {}, disks: [], takes: {} };
  // cast: what the change of a Claim is made of.
  const input = { declared, nowMs: 0 } as unknown as PlanInput;
  const seen = (volumes: object[]): Machine => ({ node: "n1", volumes }) as unknown as Machine;
  assert.equal(claimChange(input, claim, seen([]))?.allocation, undefined);
  const change = claimChange(input, claim, seen([{ ...disk, role: "Disk" }]));
  assert.equal(change?.volumes?.[0]?.proof, "Named");
  assert.deepEqual(change?.allocation, { operation: "o1", storage: "s", listed: [] });
});

it("how large a disk is about to become is forgotten when it was seen so in its place", () => {
  const known = { id: "s:vm-1-disk-0", role: "Disk", disk: "root", state: "Attached" } as const;
  const volumes = [{ ...known, size: "1", growsTo: "3" }];
  const claim = { state: "Bound", node: "n1", volumes } as unknown as ClaimSpec;
  const declared = { onDelete: {}, disks: [], takes: {} };
  // cast: what the change of a Claim is made of.
  const input = { declared, nowMs: 0 } as unknown as PlanInput;
  const after = (sizeBytes: number): unknown => {
    const seen = { ...known, storage: "s", isOwn: true, sizeBytes };
    return claimChange(input, claim, { node: "n1", volumes: [seen] } as unknown as Machine);
  };
  assert.equal(after(1), undefined);
  assert.deepEqual(after(2), { volumes: [{ ...known, size: "2", growsTo: "3" }] });
  assert.deepEqual(after(3), { volumes: [{ ...known, size: "3" }] });
  assert.deepEqual(after(4), { volumes: [{ ...known, size: "4" }] });
});
