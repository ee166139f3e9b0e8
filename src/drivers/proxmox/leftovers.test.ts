import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ClaimedMachine, type Leftover, writeMark } from "../../hypervisor/index.ts";
import { claim, data, error, open, ScriptedServer, tokenId, upid } from "./fixture.ts";
import { proxmoxDriver } from "./driver.ts";
import { markFor } from "./operations/standing.ts";
import type { PveReply } from "./wire/wire.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const config = {
  digest: "d1",
  description: writeMark("", markFor(claim, { disks: {}, networks: {} })),
  smbios1: `uuid=${claim.identity}`,
  scsi0: `zfs:vm-${id}-disk-0,size=8G`,
};

interface Scene {
  readonly storages?: readonly object[];
  /** What each storage lists, by name. */
  readonly listed?: Readonly<Record<string, readonly string[]>>;
  readonly machine?: PveReply;
  readonly others?: readonly object[];
}

const zfs = {
  storage: "zfs",
  type: "zfspool",
  content: "images",
  active: 1,
  enabled: 1,
  shared: 0,
};

function script({ storages = [zfs], listed = {}, machine = data(config), others = [] }: Scene) {
  const rows = Object.entries(listed).map(([storage, names]) => {
    const volumes = names.map((name) => {
      const vmid = Number(/vm-(\d+)/.exec(name)?.[1]);
      return { volid: `${storage}:${name}`, vmid, content: "images", size: 1 };
    });
    return [`GET /nodes/pve1/storage/${storage}/content`, data(volumes)] as const;
  });
  return {
    [`GET ${at}/config`]: machine,
    [`GET ${at}/pending`]: data([]),
    [`GET ${at}/snapshot`]: data([{ name: "current" }]),
    "GET /nodes/pve1/storage": data(storages),
    "GET /cluster/resources": data([{ type: "qemu", vmid: Number(id), node: "pve1" }, ...others]),
    ...Object.fromEntries(rows),
  };
}

function driver(server: ScriptedServer, exclusiveStorages: string[] = []) {
  const random = { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "" };
  return proxmoxDriver({ send: server.send, tokenId, random, settings: { exclusiveStorages } });
}

async function proofs(
  scene: Scene,
  of: ClaimedMachine = claim,
  exclusive: string[] = [],
): Promise<Leftover["proof"][]> {
  const answer = await driver(new ScriptedServer(script(scene)), exclusive).leftovers(of);
  assert(answer.ok, JSON.stringify(answer));
  return answer.value.map(({ proof }) => proof);
}

const stray = { zfs: [`vm-${id}-disk-0`, `vm-${id}-disk-1`, "vm-77-disk-0"] };

describe("a volume that nothing refers to", () => {
  it("is ours if it appeared on local storage under our mark, after our listing", async () => {
    assert.deepEqual(await proofs({ listed: stray }), ["MadeUnderMark"]);
  });

  it("is nobody's if no listing was made before, or the machine is not ours", async () => {
    const { preflightVolumes: _, ...unlisted } = claim;
    assert.deepEqual(await proofs({ listed: stray }, unlisted), ["Unattributed"]);
    const stranger = data({ digest: "d", name: "x", scsi0: config.scsi0 });
    assert.deepEqual(await proofs({ listed: stray, machine: stranger }), ["Unattributed"]);
    const text = `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`;
    const gone = error(500, text);
    const onlyStray = { zfs: [`vm-${id}-disk-1`] };
    assert.deepEqual(await proofs({ listed: onlyStray, machine: gone }), ["Unattributed"]);
  });

  it("is a stranger's for ever if it was there before", async () => {
    const before = { ...claim, preflightVolumes: [`zfs:vm-${id}-disk-1`] };
    assert.deepEqual(await proofs({ listed: stray }, before), ["Before"]);
  });

  it("is ours if the Claim names it, whether or not the machine stands", async () => {
    const volume = {
      id: `zfs:vm-${id}-disk-1`,
      role: "Disk",
      state: "Attached",
    } as const;
    const named = { ...claim, volumes: [volume] };
    const text = `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`;
    const scene = { listed: { zfs: [`vm-${id}-disk-1`] }, machine: error(500, text) };
    assert.deepEqual(await proofs(scene, named), ["Claimed"]);
  });

  it("on a node that it was moved to may be older than the machine", async () => {
    const moved = { ...claim, preflightNode: "pve2" };
    assert.deepEqual(await proofs({ listed: stray }, moved), ["Unattributed"]);
    const { preflightNode: _unknown, ...adopted } = claim;
    assert.deepEqual(await proofs({ listed: stray }, adopted), ["Unattributed"]);
  });

  it("on shared storage may be another cluster's, unless the storage is said to be ours", async () => {
    const scene = { storages: [{ ...zfs, shared: 1 }], listed: stray };
    assert.deepEqual(await proofs(scene), ["Unattributed"]);
    assert.deepEqual(await proofs(scene, claim, ["zfs"]), ["MadeUnderMark"]);
  });

  it("is in doubt if the machine uses one of its name: two storages may be one pool", async () => {
    const twin = { ...zfs, storage: "zfs-too" };
    const listed = { zfs: [`vm-${id}-disk-0`], "zfs-too": [`vm-${id}-disk-0`] };
    assert.deepEqual(await proofs({ storages: [zfs, twin], listed }), ["Unattributed"]);
  });

  it("makes no list at all where a storage with volumes of ours cannot be read", async () => {
    const dead = { ...zfs, storage: "nfs", active: 0 };
    const volume = {
      id: `nfs:${id}/vm-${id}-disk-1.raw`,
      role: "Disk",
      state: "Attached",
    } as const;
    const server = new ScriptedServer(script({ storages: [dead] }));
    const answer = await driver(server).leftovers({ ...claim, volumes: [volume] });
    assert(!answer.ok && answer.failure.category === "NodeUnhealthy");
    assert.deepEqual(await proofs({ storages: [dead] }), []);
  });
});

describe("removing a volume", () => {
  const volume = `zfs:vm-${id}-disk-1`;
  const operation = { kind: "removeVolume", claim, node: "pve1", volume } as const;
  const path = `DELETE /nodes/pve1/storage/zfs/content/${encodeURIComponent(volume)}`;

  it("removes one, by its own name", async () => {
    const task = upid("imgdel", `${id}@zfs`);
    const server = new ScriptedServer({ ...script({ listed: stray }), [path]: data(task) });
    assert.deepEqual(await driver(server).begin(operation, open), { outcome: "task", task });
    assert.equal(server.writes.length, 1);
  });

  it("leaves one alone that another machine uses, by this or another storage's id", async () => {
    const others = [{ type: "qemu", vmid: 300, node: "pve2" }];
    const server = new ScriptedServer({
      ...script({ listed: stray, others }),
      "GET /nodes/pve2/qemu/300/config": data({ digest: "x", scsi3: `zfs-too:vm-${id}-disk-1` }),
    });
    const begun = await driver(server).begin(operation, open);
    assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
    assert.deepEqual(server.writes, []);
  });

  it("that nobody saw to for a while asks for the snapshots of all machines, and no other", async () => {
    const others = [{ type: "qemu", vmid: 300, node: "pve2" }];
    const other = "/nodes/pve2/qemu/300";
    const scene = {
      ...script({ listed: stray, others }),
      [`GET ${other}/config`]: data({ digest: "x" }),
      [`GET ${other}/snapshot`]: data([{ name: "before" }, { name: "current" }]),
      [`GET ${other}/snapshot/before/config`]: data({ scsi1: `zfs:vm-${id}-disk-1` }),
      [path]: data(upid("imgdel", `${id}@zfs`)),
    };
    const seenTo = new ScriptedServer(scene);
    assert.equal((await driver(seenTo).begin(operation, open)).outcome, "task");
    const server = new ScriptedServer(scene);
    const begun = await driver(server).begin({ ...operation, isStray: true }, open);
    assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
    assert.deepEqual(server.writes, []);
    const reads = (of: ScriptedServer): number => {
      return of.requests.filter(({ path: asked }) => asked.startsWith(`${other}/snapshot`)).length;
    };
    assert.deepEqual([reads(seenTo), reads(server)], [0, 2]);
  });

  it("removes nothing while a machine that was listed is not where it was", async () => {
    const others = [{ type: "qemu", vmid: 300, node: "pve2" }];
    const text = "Configuration file 'nodes/pve2/qemu-server/300.conf' does not exist";
    const server = new ScriptedServer({
      ...script({ listed: stray, others }),
      "GET /nodes/pve2/qemu/300/config": error(500, text),
    });
    const begun = await driver(server).begin(operation, open);
    assert(begun.outcome === "refused" && begun.failure.category === "UnknownOutcome");
    assert.deepEqual(server.writes, []);
  });

  it("removes nothing while a machine's config cannot be read", async () => {
    const others = [{ type: "qemu", vmid: 300, node: "pve2" }];
    const server = new ScriptedServer({
      ...script({ listed: stray, others }),
      "GET /nodes/pve2/qemu/300/config": error(595, "No route to host"),
    });
    const begun = await driver(server).begin(operation, open);
    assert(begun.outcome === "refused" && begun.failure.category === "NodeUnhealthy");
    assert.deepEqual(server.writes, []);
  });
});
