import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Begun, type Operation, readMark, writeMark } from "../../../hypervisor/index.ts";
import { claim, data, driverOn, error, open, ScriptedServer, upid } from "../fixture.ts";
import { pathPart, type PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const volume = `zfs:vm-${id}-disk-0`;
const unused = `zfs:vm-${id}-disk-3`;
const mark = markFor(claim, { disks: { root: "scsi0", data: "scsi1" }, networks: { lan: "net0" } });
const known = [volume, unused].map((each) => {
  return { id: each, role: "Disk", proof: "Config", storage: "zfs", state: "Attached" } as const;
});
const bound = { ...claim, volumes: known };

const config = {
  digest: "d1",
  description: writeMark("Ada's", mark),
  smbios1: `uuid=${claim.identity}`,
  scsi0: `${volume},size=8G`,
  unused0: unused,
  net0: "virtio=BC:24:11:00:00:01,bridge=vmbr0",
};

const here = { claim: bound, at: { node: "pve1", version: "d1" } };
const listed = [volume, unused].map((volid) => ({ volid, vmid: id, content: "images", size: 1 }));
const reads = {
  [`GET ${at}/config`]: data(config),
  "GET /nodes/pve1/storage/zfs/content": data(listed),
};

async function begin(
  operation: Operation,
  script: Record<string, PveReply>,
): Promise<{ begun: Begun; server: ScriptedServer }> {
  const server = new ScriptedServer(script);
  return { begun: await driverOn(server).begin(operation, open), server };
}

const operations: readonly Operation[] = [
  { kind: "attach", ...here, disk: { name: "data" }, volume: unused },
  { kind: "detach", ...here, part: { of: "disk", name: "root" } },
  { kind: "destroyDisk", ...here, volume },
  { kind: "moveDisk", ...here, disk: "root", storage: "nfs" },
  { kind: "handOver", ...here, volume, to: { ...here, disk: "data" } },
  { kind: "migrate", ...here, to: "pve2" },
  { kind: "reboot", ...here },
  { kind: "suspend", ...here },
  { kind: "resume", ...here },
  { kind: "guard", ...here, highAvailability: { enabled: true }, power: "Running" },
  { kind: "regroup", ...here, pool: "web" },
];

describe("every operation on parts and places", () => {
  for (const operation of operations) {
    const name = operation.kind;
    it(`${name}: does nothing to a machine that is not provably ours`, async () => {
      const stranger = { ...config, description: "mine", smbios1: "uuid=1" };
      const { begun, server } = await begin(operation, { [`GET ${at}/config`]: data(stranger) });
      assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
      assert.deepEqual(server.writes, []);
    });

    it(`${name}: does nothing to a machine that is not as it was seen`, async () => {
      const changed = { ...config, digest: "d2" };
      const { begun, server } = await begin(operation, { [`GET ${at}/config`]: data(changed) });
      assert.equal(begun.outcome, "changed");
      assert.deepEqual(server.writes, []);
    });
  }
});

describe("disks", () => {
  it("are detached by name, under the digest, and never freed by that", async () => {
    const script = { ...reads, [`PUT ${at}/config`]: data(null) };
    const part = { of: "disk", name: "root" } as const;
    const { begun, server } = await begin({ kind: "detach", ...here, part }, script);
    assert.deepEqual(begun, { outcome: "done" });
    assert.deepEqual(server.writes[0]?.params, { delete: "scsi0", digest: "d1" });
  });

  it("that nobody named are never detached", async () => {
    const part = { of: "disk", name: "unused0" } as const;
    const { begun, server } = await begin({ kind: "detach", ...here, part }, reads);
    assert.deepEqual(begun, { outcome: "done" });
    assert.deepEqual(server.writes, []);
  });

  it("come back under their names, from what the machine itself keeps", async () => {
    const script = { ...reads, [`PUT ${at}/config`]: data(null) };
    const disk = { name: "data", discard: true };
    const { begun, server } = await begin(
      { kind: "attach", ...here, disk, volume: unused },
      script,
    );
    assert.deepEqual(begun, { outcome: "done" });
    assert.deepEqual(server.writes[0]?.params, { scsi1: `${unused},discard=on`, digest: "d1" });
  });

  it("are destroyed in two steps: detached first, then freed", async () => {
    const task = upid("qmconfig", id);
    const script = {
      ...reads,
      [`PUT ${at}/config`]: data(null),
      [`POST ${at}/config`]: data(task),
    };
    const first = await begin({ kind: "destroyDisk", ...here, volume }, script);
    assert.deepEqual(first.begun, { outcome: "progressed" });
    assert.deepEqual(first.server.writes[0]?.params, { delete: "scsi0", digest: "d1" });
    const second = await begin({ kind: "destroyDisk", ...here, volume: unused }, script);
    assert.deepEqual(second.begun, { outcome: "task", task });
    assert.deepEqual(second.server.writes[0]?.params, { delete: "unused0", digest: "d1" });
  });

  it("are not destroyed without standing in the Claim, nor while they still leave", async () => {
    const other = `zfs:vm-${id}-disk-9`;
    const unknown = await begin({ kind: "destroyDisk", ...here, volume: other }, reads);
    assert(unknown.begun.outcome === "refused");
    const leaving = data([{ key: "scsi0", value: `${volume},size=8G`, delete: 1 }]);
    const script = { ...reads, [`GET ${at}/pending`]: leaving };
    const { begun, server } = await begin({ kind: "destroyDisk", ...here, volume }, script);
    assert.equal(begun.outcome, "blocked");
    assert.deepEqual(server.writes, []);
  });

  it("move with the digest, and the old volume goes after the copy", async () => {
    const task = upid("qmmove", id);
    const script = { ...reads, [`POST ${at}/move_disk`]: data(task) };
    const { begun, server } = await begin(
      { kind: "moveDisk", ...here, disk: "root", storage: "nfs" },
      script,
    );
    assert.deepEqual(begun, { outcome: "task", task });
    const params = { disk: "scsi0", storage: "nfs", delete: 1, digest: "d1" };
    assert.deepEqual(server.writes[0]?.params, params);
  });

  it("are handed over under both digests", async () => {
    const keeper = { ...claim, externalId: "1000200", identity: id.padStart(36, "0") };
    const kept = markFor(keeper, { disks: { "web-root": "scsi0" }, networks: {} });
    const other = {
      digest: "k1",
      description: writeMark("", kept),
      smbios1: `uuid=${keeper.identity}`,
    };
    const task = upid("qmmove", id);
    const script = {
      ...reads,
      "GET /nodes/pve1/qemu/1000200/config": data(other),
      "GET /nodes/pve1/storage/zfs/content": data([{ volid: volume, vmid: id, content: "images" }]),
      [`POST ${at}/move_disk`]: data(task),
    };
    const to = { claim: keeper, at: { node: "pve1", version: "k1" }, disk: "web-root" };
    const { begun, server } = await begin({ kind: "handOver", ...here, volume, to }, script);
    assert.deepEqual(begun, { outcome: "task", task });
    assert.deepEqual(server.writes[0]?.params, {
      disk: "scsi0",
      "target-vmid": "1000200",
      "target-disk": "scsi0",
      digest: "d1",
      "target-digest": "k1",
    });
    const foreign = { ...script, "GET /nodes/pve1/qemu/1000200/config": data(config) };
    const refused = await begin({ kind: "handOver", ...here, volume, to }, foreign);
    assert.equal(refused.begun.outcome, "refused");
    assert.deepEqual(refused.server.writes, []);
  });

  it("bring what else the shape needs, in the same breath", async () => {
    const task = upid("qmconfig", id);
    const script = { ...reads, [`POST ${at}/config`]: data(task) };
    const disk = { name: "data", storage: "zfs", sizeBytes: 1024 ** 3, fill: { from: "blank" } };
    const also = {
      cloudInit: { storage: "zfs" },
      firmware: { type: "UEFI", secureBoot: true, storage: "nfs" },
    } as const;
    const operation = { kind: "addDisk", ...here, disk, also } as Operation;
    const { server } = await begin(operation, script);
    assert.deepEqual(server.writes[0]?.params, {
      digest: "d1",
      bios: "ovmf",
      efidisk0: "nfs:1,efitype=4m,pre-enrolled-keys=1",
      ide2: "zfs:cloudinit",
      scsi1: "zfs:1",
    });
  });
});

describe("a clone", () => {
  const source = "9000";
  const clone: Operation = { kind: "clone", claim, node: "pve1", source, mode: "Linked" };
  const template = { digest: "t1", template: 1 };
  const task = upid("qmclone", source);
  const log = (line: string) => data([{ n: 1, t: line }]);
  const made = {
    digest: "c1",
    description: writeMark("", markFor(claim, { disks: {}, networks: {} })),
    smbios1: "uuid=00000000-0000-4000-8000-00000000c10e",
    boot: "order=scsi0",
    scsi0: `zfs:base-9000-disk-0/vm-${id}-disk-0,size=8G`,
    net0: "virtio=BC:24:11:00:00:09,bridge=vmbr0",
  };
  const stamp: Operation = {
    kind: "stamp",
    claim,
    at: { node: "pve1", version: "c1" },
    disks: [{ name: "root", boots: true }],
    networks: [{ name: "lan" }],
    cloned: { from: source },
  };
  const proof = {
    [`GET ${at}/config`]: data(made),
    "GET /nodes/pve1/tasks": data([{ upid: task, endtime: 1, status: "OK" }]),
    [`GET /nodes/pve1/tasks/${pathPart(task)}/log`]: log("create linked clone of drive scsi0"),
    [`PUT ${at}/config`]: data(null),
  };

  it("carries the mark from the beginning, and shares blocks of templates only", async () => {
    const script = {
      "GET /nodes/pve1/qemu/9000/config": data(template),
      "POST /nodes/pve1/qemu/9000/clone": data(task),
    };
    const { begun, server } = await begin(clone, script);
    assert.deepEqual(begun, { outcome: "task", task });
    const { description, ...rest } = server.writes[0]?.params ?? {};
    assert.deepEqual(rest, { newid: id, full: 0 });
    assert.equal(readMark(String(description)).mark?.identity, claim.identity);
    const plain = { ...script, "GET /nodes/pve1/qemu/9000/config": data({ digest: "t1" }) };
    const refused = await begin(clone, plain);
    assert(refused.begun.outcome === "refused");
    assert.deepEqual(refused.server.writes, []);
  });

  it("gets identity, mark and the places of its names in one change", async () => {
    const { begun, server } = await begin(stamp, proof);
    assert.deepEqual(begun, { outcome: "done" });
    const { description, ...rest } = server.writes[0]?.params ?? {};
    assert.deepEqual(rest, { smbios1: `uuid=${claim.identity}`, digest: "c1" });
    const written = readMark(String(description)).mark;
    assert.deepEqual([written?.disks, written?.networks], [{ root: "scsi0" }, { lan: "net0" }]);
  });

  it("is not taken without a task of ours, nor where its log names another machine", async () => {
    const elsewhere = log("creating a clone of VM 9000 with ID 1000999");
    const cases = [
      { "GET /nodes/pve1/tasks": data([]) },
      { "GET /nodes/pve1/tasks": data([{ upid: upid("qmclone", source, "root@pam") }]) },
      { [`GET /nodes/pve1/tasks/${pathPart(task)}/log`]: elsewhere },
      { [`GET ${at}/config`]: data({ ...made, description: "a stranger's" }) },
    ];
    for (const script of cases) {
      const { begun, server } = await begin(stamp, { ...proof, ...script });
      assert(begun.outcome === "refused", JSON.stringify(script));
      assert.equal(begun.failure.category, "IdentityConflict");
      assert.deepEqual(server.writes, []);
    }
  });

  it("is in the making while its task runs, and unstamped when that has ended", async () => {
    const half = { ...made, lock: "clone" };
    const running = { "GET /nodes/pve1/tasks": data([{ upid: task }]) };
    const hints = { clonedFrom: source, withoutPower: true };
    const script = { ...proof, ...running, [`GET ${at}/config`]: data(half) };
    const early = await driverOn(new ScriptedServer(script)).observe(claim, hints);
    assert(early.at === "opaque" && early.lock.state === "Held");
    const husk = { ...script, [`GET ${at}/config`]: data({ digest: "h", lock: "clone" }) };
    const empty = await driverOn(new ScriptedServer(husk)).observe(claim, hints);
    assert(empty.at === "opaque" && empty.lock.task === task);
    const done = await driverOn(new ScriptedServer(proof)).observe(claim, hints);
    assert(done.at === "foreign" && done.reason === "Unstamped");
    const unasked = await driverOn(new ScriptedServer(proof)).observe(claim, {
      withoutPower: true,
    });
    assert(unasked.at === "foreign" && unasked.reason === "Copied");
  });
});

describe("high availability", () => {
  const sid = `/cluster/ha/resources/${pathPart(`vm:${id}`)}`;
  const guard = { kind: "guard", ...here, power: "Running" } as const;
  const unknown = error(500, `no such resource 'vm:${id}'`);

  it("is declared once, then changed, then taken back", async () => {
    const highAvailability = { enabled: true, maxRestarts: 2 };
    const first = await begin(
      { ...guard, highAvailability },
      { ...reads, [`GET ${sid}`]: unknown, "POST /cluster/ha/resources": data(null) },
    );
    assert.deepEqual(first.server.writes[0]?.params, {
      sid: `vm:${id}`,
      state: "started",
      max_restart: 2,
    });
    const there = { ...reads, [`GET ${sid}`]: data({ sid: `vm:${id}`, state: "started" }) };
    const second = await begin(
      { ...guard, highAvailability, power: "Stopped" },
      { ...there, [`PUT ${sid}`]: data(null) },
    );
    assert.equal(second.server.writes[0]?.params?.["state"], "stopped");
    const off = { ...guard, highAvailability: { enabled: false } };
    const third = await begin(off, { ...there, [`DELETE ${sid}`]: data(null) });
    assert.deepEqual(third.begun, { outcome: "done" });
    const again = await begin(off, { ...reads, [`GET ${sid}`]: unknown });
    assert.deepEqual([again.begun, again.server.writes], [{ outcome: "done" }, []]);
  });

  it("has no groups any more where rules took their place", async () => {
    const highAvailability = { enabled: true, group: "fast" };
    const { begun, server } = await begin({ ...guard, highAvailability }, reads);
    assert(begun.outcome === "refused" && begun.failure.category === "APINotSupported");
    assert.deepEqual(server.writes, []);
  });
});
