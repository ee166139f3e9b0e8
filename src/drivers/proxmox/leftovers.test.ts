import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ClaimedMachine, type Leftover, writeMark } from "../../hypervisor/index.ts";
import { claim, data, error, open, scriptClock, ScriptedServer, tokenId, upid } from "./fixture.ts";
import { proxmoxDriver } from "./driver.ts";
import { markFor } from "./operations/standing.ts";
import { pathPart, type PveReply } from "./wire/wire.ts";

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
  /** What the node knows of tasks on the id, and what the log of each says. */
  readonly tasks?: readonly object[];
  readonly log?: readonly string[];
  readonly ctime?: number;
}

const zfs = {
  storage: "zfs",
  type: "zfspool",
  content: "images",
  active: 1,
  enabled: 1,
  shared: 0,
};

function script(scene: Scene) {
  const { storages = [zfs], listed = {}, machine = data(config), others = [] } = scene;
  const { tasks = [], log = [], ctime } = scene;
  const logs = tasks.map((row) => {
    const name = pathPart("upid" in row ? String(row.upid) : "");
    return [`GET /nodes/pve1/tasks/${name}/log`, data(log.map((t, n) => ({ n, t })))] as const;
  });
  const rows = Object.entries(listed).map(([storage, names]) => {
    const volumes = names.map((name) => {
      const vmid = Number(/(?:vm|base)-(\d+)-[^/]*$/.exec(name)?.[1]);
      return { volid: `${storage}:${name}`, vmid, content: "images", size: 1, ctime };
    });
    return [`GET /nodes/pve1/storage/${storage}/content`, data(volumes)] as const;
  });
  return {
    [`GET ${at}/config`]: machine,
    [`GET ${at}/pending`]: data([]),
    [`GET ${at}/snapshot`]: data([{ name: "current" }]),
    "GET /nodes/pve1/storage": data(storages),
    "GET /cluster/resources": data([{ type: "qemu", vmid: Number(id), node: "pve1" }, ...others]),
    "GET /nodes/pve1/tasks": data(tasks),
    "GET /nodes/pve2/tasks": data([]),
    ...Object.fromEntries([...rows, ...logs]),
  };
}

function allocationOf({ allocation }: ClaimedMachine): NonNullable<ClaimedMachine["allocation"]> {
  assert(allocation !== undefined);
  return allocation;
}

function driver(
  server: ScriptedServer,
  exclusiveStorages: string[] = [],
  unlock?: { readonly username: string; readonly password: string },
) {
  const random = { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "" };
  const settings = { exclusiveStorages };
  return proxmoxDriver({
    send: server.send,
    tokenId,
    clock: scriptClock,
    random,
    settings,
    unlock,
  });
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

const since = "2026-01-02T03:30:00Z";
const sinceMs = Date.parse(since);

/** A task that ended, as the list of a node has it. */
function taskRow(
  type: string,
  { status = "unexpected status", user = tokenId, afterSeconds = 2, endSeconds = 60, of = id } = {},
): object {
  const startSeconds = sinceMs / 1000 + afterSeconds;
  const start = startSeconds.toString(16).toUpperCase().padStart(8, "0");
  const name = `UPID:pve1:00001234:00ABCDEF:${start}:${type}:${of}:${user}:`;
  return { upid: name, endtime: sinceMs / 1000 + endSeconds, status };
}

const allocating: ClaimedMachine = {
  ...claim,
  allocation: {
    operation: "op-1",
    node: "pve1",
    storage: "zfs",
    size: "1",
    since,
    listed: [`zfs:vm-${id}-disk-0`],
    complete: true,
  },
};

const died = [taskRow("qmconfig")];

describe("a volume that nothing refers to", () => {
  it("is nobody's by its name, also under our marker and after our listing", async () => {
    assert.deepEqual(await proofs({ listed: stray }), ["Unattributed"]);
    const text = `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`;
    const onlyStray = { zfs: [`vm-${id}-disk-1`] };
    const gone = { listed: onlyStray, machine: error(500, text) };
    assert.deepEqual(await proofs(gone), ["Unattributed"]);
  });

  it("is ours if the log of our own dead task names it", async () => {
    for (const line of [
      `allocated target volume 'zfs:vm-${id}-disk-1'`,
      `scsi1: successfully created disk 'zfs:vm-${id}-disk-1,size=1G'`,
      `  Logical volume "vm-${id}-disk-1" created.`,
    ]) {
      const scene = { listed: stray, tasks: died, log: ["create full clone", line] };
      assert.deepEqual(await proofs(scene, allocating), ["TaskLogged"], line);
    }
    const files = { zfs: [`${id}/vm-${id}-disk-1.raw`] };
    const log = [`Formatting '/tank/images/${id}/vm-${id}-disk-1.raw', fmt=raw size=1`];
    assert.deepEqual(await proofs({ listed: files, tasks: died, log }, allocating), ["TaskLogged"]);
  });

  it("is not ours by a log that names another, or that of a stranger's or finished task", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const other = {
      listed: stray,
      tasks: died,
      log: ["allocated target volume 'zfs:vm-7-disk-1'"],
    };
    const larger = { ...allocating, allocation: { ...allocationOf(allocating), size: "2" } };
    assert.deepEqual(await proofs(other, larger), ["Unattributed"]);
    for (const row of [
      taskRow("qmconfig", { user: "root@pam" }),
      taskRow("qmconfig", { status: "OK" }),
      taskRow("qmstart"),
    ]) {
      const scene = { listed: stray, tasks: [row], log };
      assert.deepEqual(await proofs(scene, allocating), ["Unattributed"], JSON.stringify(row));
    }
    assert.deepEqual(await proofs({ listed: stray, tasks: died, log }), ["Unattributed"]);
  });

  it("is probably ours if nothing was logged and it fits in every respect", async () => {
    const scene = { listed: stray, tasks: died };
    assert.deepEqual(await proofs(scene, allocating), ["Probable"]);
    const allocation = allocationOf(allocating);
    const listed = [...allocation.listed, `zfs:vm-${id}-disk-1`];
    for (const not of [{ size: "2" }, { complete: false }, { storage: "far" }, { listed }]) {
      const unfit = { ...allocating, allocation: { ...allocation, ...not } };
      assert.deepEqual(await proofs(scene, unfit), ["Unattributed"], JSON.stringify(not));
    }
    const { size: _size, ...sizeless } = allocation;
    const unsized = { ...allocating, allocation: sizeless };
    assert.deepEqual(await proofs(scene, unsized), ["Unattributed"]);
    const beside = [...died, taskRow("qmsnapshot", { user: "root@pam" })];
    assert.deepEqual(await proofs({ ...scene, tasks: beside }, allocating), ["Unattributed"]);
    assert.deepEqual(await proofs({ ...scene, tasks: [] }, allocating), ["Unattributed"]);
  });

  it("is ours by the log of a failed task only where the storage tells that it is of that time", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const tasks = [taskRow("qmconfig", { status: "out of space" })];
    const scene = { listed: stray, tasks, log };
    assert.deepEqual(await proofs(scene, allocating), ["Probable"]);
    const ctime = sinceMs / 1000 + 30;
    assert.deepEqual(await proofs({ ...scene, ctime }, allocating), ["TaskLogged"]);
    const late = { ...scene, ctime: sinceMs / 1000 + 600 };
    assert.deepEqual(await proofs(late, allocating), ["Unattributed"]);
  });

  it("is not ours by the log of a task if it has another size than the one asked for", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const allocation = allocationOf(allocating);
    const { size: _size, ...unsized } = allocation;
    for (const tasks of [died, [taskRow("qmconfig", { status: "out of space" })]]) {
      const scene = { listed: stray, tasks, log, ctime: sinceMs / 1000 + 30 };
      for (const other of [{ ...allocation, size: "2" }, unsized]) {
        const found = await proofs(scene, { ...allocating, allocation: other });
        assert.deepEqual(found, ["Unattributed"], JSON.stringify(other));
      }
    }
  });

  it("is not ours by the log of a failed task if it may be as new as the end of the task", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const tasks = [taskRow("qmconfig", { status: "out of space" })];
    for (const seconds of [60, 65]) {
      const scene = { listed: stray, tasks, log, ctime: sinceMs / 1000 + seconds };
      assert.deepEqual(await proofs(scene, allocating), ["Probable"], String(seconds));
    }
    // What a killed worker began goes on for some seconds.
    const killed = { listed: stray, tasks: died, log, ctime: sinceMs / 1000 + 65 };
    assert.deepEqual(await proofs(killed, allocating), ["TaskLogged"]);
  });

  it("is not ours by the log of a failed task if somebody else was at work there since", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const failed = taskRow("qmconfig", { status: "out of space" });
    const tasks = [failed, taskRow("qmsnapshot", { user: "root@pam", status: "OK" })];
    const scene = { listed: stray, tasks, log, ctime: sinceMs / 1000 + 30 };
    assert.deepEqual(await proofs(scene, allocating), ["Unattributed"]);
  });

  it("is not ours by the log of a task that removed it again: the name is used again", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    for (const tasks of [died, [taskRow("qmconfig", { status: "out of space" })]]) {
      const scene = { listed: stray, tasks, ctime: sinceMs / 1000 + 30 };
      for (const line of [
        `  Logical volume "vm-${id}-disk-1" successfully removed.`,
        "Removing image: 1% complete...\rRemoving image: 100% complete...done.",
        `removing volume 'zfs:vm-${id}-disk-1'`,
      ]) {
        const found = await proofs({ ...scene, log: [...log, line] }, allocating);
        assert.deepEqual(found, ["Unattributed"], line);
      }
      for (const line of [
        `  Logical volume "vm-${id}-disk-11" successfully removed.`,
        `unable to remove 'zfs:vm-${id}-disk-1'`,
        "Removing image: 2% complete...failed.",
      ]) {
        const found = await proofs({ ...scene, log: [...log, line] }, allocating);
        assert.deepEqual(found, ["TaskLogged"], line);
      }
    }
  });

  it("is not ours by times of a clock that was set since the task", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const tasks = [taskRow("qmconfig", { afterSeconds: 600, endSeconds: 660 })];
    const scene = { listed: stray, tasks, log, ctime: sinceMs / 1000 + 630 };
    assert.deepEqual(await proofs(scene, allocating), ["Probable"]);
  });

  it("is not ours by the time of a file server, after what the task left was looked for", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const ctime = sinceMs / 1000 + 30;
    const shared = [{ ...zfs, shared: 1 }];
    const scene = { storages: shared, listed: stray, tasks: died, log, ctime };
    assert.deepEqual(await proofs(scene, allocating), ["TaskLogged"]);
    const allocation = { ...allocationOf(allocating), settledAt: since };
    const settled = { ...allocating, allocation };
    assert.deepEqual(await proofs(scene, settled), ["Unattributed"]);
    assert.deepEqual(await proofs({ ...scene, storages: [zfs] }, settled), ["TaskLogged"]);
  });

  it("is not even probably ours under a name that nobody but a person chooses", async () => {
    for (const name of [`vm-${id}-rescue`, `vm-${id}-disk-1-old`, `base-${id}-disk-1`]) {
      const listed = { zfs: [`vm-${id}-disk-0`, name] };
      assert.deepEqual(await proofs({ listed, tasks: died }, allocating), ["Unattributed"], name);
    }
  });

  it("is not even probably ours if it is older or newer than our task", async () => {
    for (const [ctime, proof] of [
      [sinceMs / 1000 + 30, "Probable"],
      [sinceMs / 1000 - 60, "Unattributed"],
      [sinceMs / 1000 + 600, "Unattributed"],
    ] as const) {
      assert.deepEqual(await proofs({ listed: stray, tasks: died, ctime }, allocating), [proof]);
    }
  });

  it("is ours by a clone, whose task bears the id of its source", async () => {
    const copied = { ...allocating, allocation: { ...allocationOf(allocating), source: "900" } };
    const tasks = [taskRow("qmclone", { of: "900" })];
    const scene = { listed: stray, tasks };
    assert.deepEqual(await proofs(scene, copied), ["Probable"]);
    assert.deepEqual(await proofs(scene, allocating), ["Unattributed"]);
    const named = (made: string): string[] => [`creating a clone of VM 900 with ID ${made}`];
    assert.deepEqual(await proofs({ ...scene, log: named(id) }, copied), ["Probable"]);
    assert.deepEqual(await proofs({ ...scene, log: named("7") }, copied), ["Unattributed"]);
    const others = [taskRow("qmclone", { of: "900", user: "root@pam" })];
    assert.deepEqual(await proofs({ ...scene, tasks: others }, copied), ["Unattributed"]);
  });

  it("is ours by the log of a linked clone", async () => {
    const file = `900/base-900-disk-0.qcow2/${id}/vm-${id}-disk-0.qcow2`;
    const line = `clone 900/base-900-disk-0.qcow2: images, vm-${id}-disk-0.qcow2, ${id} to `;
    const image = `base-900-disk-0/vm-${id}-disk-1`;
    const snapshot = `clone base-900-disk-0: base-900-disk-0 snapname __base__ to vm-${id}-disk-1`;
    for (const [name, log] of [
      [file, `${line}vm-${id}-disk-0.qcow2 (base=../900/base-900-disk-0.qcow2)`],
      [image, snapshot],
    ] as const) {
      const allocation = { ...allocationOf(allocating), source: "900" };
      const scene = { tasks: [taskRow("qmclone", { of: "900" })], log: [log] };
      const found = await proofs(
        { ...scene, listed: { zfs: [name] } },
        { ...allocating, allocation },
      );
      assert.deepEqual(found, ["TaskLogged"], name);
    }
  });

  it("is judged by the size that is asked for on its own storage", async () => {
    const far = { ...zfs, storage: "far" };
    const listed = { zfs: [`vm-${id}-disk-0`], far: [`vm-${id}-disk-1`] };
    const scene = { storages: [zfs, far], listed, tasks: died };
    const allocation = { ...allocationOf(allocating), size: "2" };
    for (const [also, proof] of [
      [[{ storage: "far", size: "1" }], "Probable"],
      [[{ storage: "far", size: "2" }], "Unattributed"],
      [[{ storage: "far" }], "Unattributed"],
      [[{ storage: "zfs", size: "1" }], "Unattributed"],
    ] as const) {
      const claimed = { ...allocating, allocation: { ...allocation, also: [...also] } };
      assert.deepEqual(await proofs(scene, claimed), [proof], JSON.stringify(also));
    }
  });

  it("is not ours by a line that names no storage, where there may be two", async () => {
    const log = [`  Logical volume "vm-${id}-disk-1" created.`];
    const also = [{ storage: "far" }];
    const allocation = { ...allocationOf(allocating), complete: false, also };
    const scene = { listed: stray, tasks: died, log };
    assert.deepEqual(await proofs(scene, { ...allocating, allocation }), ["Unattributed"]);
    const copied = {
      ...scene,
      log: ["create full clone of drive scsi0 (zfs:vm-9-disk-0)", ...log],
    };
    assert.deepEqual(await proofs(copied, { ...allocating, allocation }), ["TaskLogged"]);
  });

  it("is probably ours also if our account for unlocking destroyed a placeholder VM before", async () => {
    const unlock = { username: "root@pam", password: "secret" };
    const cleared = taskRow("qmdestroy", { status: "OK", user: "root@pam", afterSeconds: -2 });
    const scene = { listed: stray, tasks: [...died, cleared] };
    assert.deepEqual(await proofs(scene, allocating), ["Unattributed"]);
    const server = new ScriptedServer(script(scene));
    const left = await driver(server, [], unlock).leftovers(allocating);
    assert(left.ok);
    assert.deepEqual(
      left.value.map(({ proof }) => proof),
      ["Probable"],
    );
  });

  it("is a stranger's for ever if it was there before", async () => {
    const before = { ...claim, otherVolumes: [{ id: `zfs:vm-${id}-disk-1` }] };
    assert.deepEqual(await proofs({ listed: stray }, before), ["Before"]);
  });

  it("is ours if the Claim names it, whether or not the machine stands", async () => {
    const volume = {
      id: `zfs:vm-${id}-disk-1`,
      role: "Disk",
      proof: "Config",
      state: "Attached",
    } as const;
    const named = { ...claim, volumes: [volume] };
    const text = `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`;
    const scene = { listed: { zfs: [`vm-${id}-disk-1`] }, machine: error(500, text) };
    assert.deepEqual(await proofs(scene, named), ["Claimed"]);
    const { proof: _proof, ...unproven } = volume;
    assert.deepEqual(await proofs(scene, { ...claim, volumes: [unproven] }), ["Unattributed"]);
    const larger = { ...claim, volumes: [{ ...volume, size: "2" }] };
    assert.deepEqual(await proofs(scene, larger), ["Unattributed"], "its name was used again");
  });

  it("on shared storage may be another cluster's, unless a log names it or nobody else uses it", async () => {
    const scene = { storages: [{ ...zfs, shared: 1 }], listed: stray, tasks: died };
    assert.deepEqual(await proofs(scene, allocating), ["Unattributed"]);
    assert.deepEqual(await proofs(scene, allocating, ["zfs"]), ["Probable"]);
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    assert.deepEqual(await proofs({ ...scene, log }, allocating), ["TaskLogged"]);
  });

  it("is in doubt if the machine uses one of its name: two storages may be one pool", async () => {
    const twin = { ...zfs, storage: "zfs-too" };
    const listed = { zfs: [`vm-${id}-disk-0`], "zfs-too": [`vm-${id}-disk-0`] };
    assert.deepEqual(await proofs({ storages: [zfs, twin], listed }), ["Unattributed"]);
    const volume = {
      id: `zfs-too:vm-${id}-disk-0`,
      role: "Disk",
      proof: "Config",
      state: "Attached",
    } as const;
    const named = { ...claim, volumes: [volume] };
    assert.deepEqual(await proofs({ storages: [zfs, twin], listed }, named), ["Unattributed"]);
  });

  it("is not ours by the log of a task from before the operation", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const tasks = [taskRow("qmconfig", { afterSeconds: -60 })];
    assert.deepEqual(await proofs({ listed: stray, tasks, log }, allocating), ["Unattributed"]);
  });

  it("is not ours if it was listed before the operation, whatever that left beside it", async () => {
    const disks = [0, 1, 2].map((number) => `vm-${id}-disk-${number}`);
    const listed = disks.slice(0, 2).map((name) => `zfs:${name}`);
    const claimed = { ...allocating, allocation: { ...allocationOf(allocating), listed } };
    const found = await proofs({ listed: { zfs: disks }, tasks: died }, claimed);
    assert.deepEqual(found, ["Unattributed", "Probable"]);
  });

  it("is in doubt while a disk that has to stay is nowhere: it may be that one, renamed", async () => {
    const log = [`allocated target volume 'zfs:vm-${id}-disk-1'`];
    const scene = { listed: stray, tasks: died, log };
    const disk = {
      id: `zfs:vm-${id}-disk-9`,
      role: "Disk",
      proof: "Config",
      state: "Attached",
    } as const;
    const kept = { ...allocating, volumes: [{ ...disk, onDelete: "Retain" as const }] };
    assert.deepEqual(await proofs(scene, kept), ["Unattributed"]);
  });

  it("makes no list at all where a storage with volumes of ours cannot be read", async () => {
    const dead = { ...zfs, storage: "nfs", active: 0 };
    const volume = {
      id: `nfs:${id}/vm-${id}-disk-1.raw`,
      role: "Disk",
      proof: "Config",
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
  const named = {
    ...claim,
    volumes: [{ id: volume, role: "Disk", proof: "Config", state: "Detached" } as const],
  };
  const operation = { kind: "removeVolume", claim: named, node: "pve1", volume } as const;
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

describe("a volume under a name that Berth chose", () => {
  const volume = `zfs:vm-${id}-berth-8f14e45fceea`;
  const listed = { zfs: [`vm-${id}-disk-0`, `vm-${id}-berth-8f14e45fceea`] };
  const allocation = {
    operation: "o1",
    node: "pve1",
    storage: "zfs",
    since: "2026-01-02T03:30:00Z",
    listed: [],
    complete: true,
  };
  const naming = (more: object, node = "pve1"): ClaimedMachine => {
    return { ...claim, node, allocation: { ...allocation, ...more } };
  };

  it("is ours if the Claim had the name before, also the name of an earlier attempt", async () => {
    assert.deepEqual(await proofs({ listed }, naming({ volume })), ["Named"]);
    assert.deepEqual(await proofs({ listed }, naming({ earlier: [volume] })), ["Named"]);
    const settledAt = allocation.since;
    assert.deepEqual(await proofs({ listed }, naming({ volume, settledAt })), ["Named"]);
  });

  it("is not ours if the Claim has another name: the name alone proves nothing", async () => {
    const other = `zfs:vm-${id}-berth-000000000000`;
    assert.deepEqual(await proofs({ listed }, naming({ volume: other })), ["Unattributed"]);
  });

  it("is not ours on another node than the one that it was to be made on", async () => {
    assert.deepEqual(await proofs({ listed }, naming({ volume, node: "pve2" })), ["Unattributed"]);
    const storages = [{ ...zfs, shared: 1 }];
    const shared = await proofs({ listed, storages }, naming({ volume, node: "pve2" }));
    assert.deepEqual(shared, ["Named"]);
  });

  it("is not ours if it was listed before it was asked for", async () => {
    const claimed = naming({ volume, listed: [volume] });
    assert.deepEqual(await proofs({ listed }, claimed), ["Unattributed"]);
  });
});
