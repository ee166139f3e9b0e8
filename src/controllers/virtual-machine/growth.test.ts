import assert from "node:assert/strict";
import { it } from "node:test";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Operation } from "../../hypervisor/index.ts";
import { claim, gib } from "./fixture.ts";
import { recordGrowth } from "./growth.ts";
import type { ConnectedTurn } from "./turn.ts";

type Volumes = NonNullable<ClaimSpec["volumes"]>;

it("how large a disk is about to become is in the Claim, once, before it is made so", async () => {
  const volumes: Volumes = [
    { id: "s:vm-1-disk-0", role: "Disk", disk: "root", state: "Attached", size: String(gib) },
    { id: "s:vm-1-disk-1", role: "Disk", disk: "data", state: "Detached", size: String(gib) },
    { id: "s:vm-1-disk-2", role: "Disk", disk: "data", state: "Attached", size: String(gib) },
  ];
  const written: Volumes[] = [];
  const record = (of: Claim, change: { volumes: Volumes }): Promise<object> => {
    written.push(change.volumes);
    return Promise.resolve({ ...of, spec: { ...of.spec, ...change } });
  };
  // cast: as much of a turn as is read.
  const turn = {
    claim: { spec: { ...claim, volumes } },
    deps: { ledger: { record } },
  } as unknown as ConnectedTurn;
  const grow = { kind: "grow", disk: "data", sizeBytes: 2 * gib } as Operation;
  await recordGrowth(turn, grow);
  await recordGrowth(turn, grow);
  await recordGrowth(turn, { kind: "addDisk", disk: { name: "data" } } as Operation);
  const sizes = written.map((all) => all.map(({ size, growsTo }) => [size, growsTo]));
  const [small, large] = [String(gib), String(2 * gib)];
  assert.deepEqual(sizes, [
    [
      [small, undefined],
      [small, undefined],
      [small, large],
    ],
  ]);
});
