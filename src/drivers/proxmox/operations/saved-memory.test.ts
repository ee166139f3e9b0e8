import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Begun, type ClaimedMachine, writeMark } from "../../../hypervisor/index.ts";
import { claim, data, driverOn, open, ScriptedServer, upid } from "../fixture.ts";
import type { PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const memory = `zfs:vm-${id}-state-suspend-2026-01-02`;
const owner: ClaimedMachine = {
  ...claim,
  volumes: [{ id: memory, role: "State", storage: "zfs", state: "Attached" }],
};
const config = {
  digest: "d1",
  description: writeMark("", markFor(claim, { disks: {}, networks: {} })),
  smbios1: `uuid=${claim.identity}`,
  lock: "suspended",
  vmstate: memory,
  runningmachine: "pc-i440fx-9.2+pve1",
};
const runs = data({ status: "running", qmpstatus: "running", lock: "suspended" });
const task = upid("qmconfig", id);
const reads = {
  [`GET ${at}/config`]: data(config),
  [`GET ${at}/status/current`]: runs,
  "GET /nodes/pve1/tasks": data([{ upid: upid("qmstart", id), endtime: 1, status: "OK" }]),
  [`POST ${at}/config`]: data(task),
};

async function thrownAway(script: Record<string, PveReply>): Promise<{
  readonly begun: Begun;
  readonly writes: ScriptedServer["writes"];
}> {
  const server = new ScriptedServer({ ...reads, ...script });
  const basis = { node: "pve1", version: "d1" };
  const operation = { kind: "destroyDisk", claim: owner, at: basis, volume: memory } as const;
  const begun = await driverOn(server).begin(operation, open);
  return { begun, writes: server.writes };
}

describe("saved memory that a machine runs beside", () => {
  it("is thrown away under the digest, and its lock with it", async () => {
    const { begun, writes } = await thrownAway({});
    assert.deepEqual(begun, { outcome: "task", task });
    assert.deepEqual(writes[0]?.params, { delete: "vmstate", digest: "d1" });
  });

  it("stays while the machine sleeps on it, or would start from it", async () => {
    for (const lock of ["suspended", undefined]) {
      const stopped = data({ status: "stopped", lock });
      const { begun, writes } = await thrownAway({ [`GET ${at}/status/current`]: stopped });
      assert.deepEqual([begun.outcome, writes], ["changed", []]);
    }
  });

  it("stays while anybody works on the machine: a resume that fails needs it again", async () => {
    const resuming = data([{ upid: upid("qmresume", id, "root@pam") }]);
    const { begun, writes } = await thrownAway({ "GET /nodes/pve1/tasks": resuming });
    assert.deepEqual([begun.outcome, writes], ["blocked", []]);
  });
});

describe("a volume for memory that nothing refers to", () => {
  const { vmstate: _, lock: _lock, ...bare } = config;
  const listed = {
    [`GET ${at}/config`]: data(bare),
    [`GET ${at}/snapshot`]: data([{ name: "current" }]),
    "GET /nodes/pve1/storage": data([
      { storage: "zfs", type: "zfspool", content: "images", active: 1, enabled: 1, shared: 0 },
    ]),
    "GET /nodes/pve1/storage/zfs/content": data(
      [memory, `zfs:vm-${id}-state-before`, `zfs:vm-${id}-disk-3`].map((volid) => {
        return { volid, vmid: Number(id), content: "images", size: 1 };
      }),
    ),
    "GET /cluster/resources": data([{ type: "qemu", vmid: Number(id), node: "pve1" }]),
    [`DELETE /nodes/pve1/storage/zfs/content/${encodeURIComponent(memory)}`]: data(task),
  };

  it("is told from the memory of a snapshot, and from disks", async () => {
    const left = await driverOn(new ScriptedServer({ ...reads, ...listed })).leftovers(claim);
    assert(left.ok);
    const told = left.value.filter(({ isSavedMemory }) => isSavedMemory === true);
    assert.deepEqual(
      told.map(({ volume, proof }) => [volume, proof]),
      [[memory, "Unattributed"]],
    );
  });

  it("goes, but not while anybody works on the machine and may have made it just now", async () => {
    const volumes = [{ id: memory, role: "State", state: "Detached", proof: "Config" } as const];
    const known = { ...claim, volumes };
    const operation = { kind: "removeVolume", claim: known, node: "pve1", volume: memory } as const;
    const suspending = { "GET /nodes/pve1/tasks": data([{ upid: upid("qmsuspend", id) }]) };
    const busy = new ScriptedServer({ ...reads, ...listed, ...suspending });
    assert.equal((await driverOn(busy).begin(operation, open)).outcome, "blocked");
    assert.deepEqual(busy.writes, []);
    const quiet = new ScriptedServer({ ...reads, ...listed });
    assert.deepEqual(await driverOn(quiet).begin(operation, open), { outcome: "task", task });
    const unproven = { ...claim, volumes: volumes.map(({ proof: _proof, ...rest }) => rest) };
    const theirs = await driverOn(quiet).begin({ ...operation, claim: unproven }, open);
    assert.equal(theirs.outcome, "refused");
  });
});
