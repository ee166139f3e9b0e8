import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "../fixture.ts";
import { releases } from "../release.ts";

const qemu = "/nodes/pve1/qemu";
const image = "import-from=local:import/debian-12-generic-amd64.qcow2";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

for (const release of releases) {
  test(`${release}: a machine is made, grown, started, stopped and removed without a trace`, async () => {
    const stage = new Stage(release);
    await created(stage, 100, { name: "web", net0: "virtio,bridge=vmbr0" });
    const { digest } = await stage.config(100);
    const source = release === "7.4" ? "local-zfs:1" : `local-zfs:0,${image}`;
    const disk = { digest: String(digest), scsi0: source };
    assert.equal(await stage.does("POST", `${qemu}/100/config`, disk), "OK");
    const grown = await stage.does("PUT", `${qemu}/100/resize`, { disk: "scsi0", size: "10G" });
    assert.ok(["OK", "200 OK"].includes(grown));
    assert.equal((await stage.config(100))["scsi0"], "local-zfs:vm-100-disk-0,size=10G");
    assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
    const running = await stage.does("DELETE", `${qemu}/100`);
    assert.equal(running, "500 VM 100 is running - destroy failed");
    assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
    assert.equal(await stage.does("DELETE", `${qemu}/100`, { purge: 1 }), "OK");
    assert.deepEqual(await stage.volumes(100, "local-zfs"), []);
    assert.equal((await stage.call("GET", "/cluster/nextid", { vmid: 100 })).data, "100");
  });
}

test("a guest with an image shuts down when asked, one without does not", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: `local:0,${image}` });
  await created(stage, 101, { scsi0: "local:1" });
  for (const vmid of [100, 101]) {
    assert.equal(await stage.does("POST", `${qemu}/${vmid}/status/start`), "OK");
  }
  assert.equal(await stage.does("POST", `${qemu}/100/status/shutdown`, { timeout: 5 }), "OK");
  const deaf = await stage.does("POST", `${qemu}/101/status/shutdown`, { timeout: 5 });
  assert.equal(deaf, "VM quit/powerdown failed - got timeout");
});

test("an agent answers a while after the start, with the address that cloud-init was told", async () => {
  const stage = new Stage();
  await created(stage, 100, {
    agent: 1,
    scsi0: `local:0,${image}`,
    net0: "virtio=02:00:00:00:00:01,bridge=vmbr0",
    ipconfig0: "ip=10.1.2.3/24",
  });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const ask = (): Promise<{ status: number; data: unknown }> => {
    return stage.call("GET", `${qemu}/100/agent/network-get-interfaces`);
  };
  assert.equal((await ask()).status, 500);
  stage.clock.advance(10_000);
  assert.match(JSON.stringify((await ask()).data), /"ip-address":"10\.1\.2\.3"/);
});

test("a leftover cloud-init drive is in the way of the next create, whatever the storage", async () => {
  const texts: [string, RegExp][] = [
    ["local", /disk image '.*vm-100-cloudinit\.qcow2' already exists$/],
    ["local-zfs", /cannot create 'rpool\/data\/vm-100-cloudinit': dataset already exists$/],
  ];
  for (const [storage, text] of texts) {
    const stage = new Stage();
    await created(stage, 100, { ide2: `${storage}:cloudinit` });
    stage.model.removeGuestFile(100);
    const end = await stage.does("POST", qemu, { vmid: 100, ide2: `${storage}:cloudinit` });
    assert.match(end, text);
    assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
  }
});

test("a leftover disk only takes its number", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  stage.model.removeGuestFile(100);
  await created(stage, 100, { scsi0: "local-zfs:1" });
  assert.equal((await stage.config(100))["scsi0"], "local-zfs:vm-100-disk-1,size=1G");
});

test("a full clone has its own identity and disks, a linked one stands on the template's", async () => {
  const stage = new Stage();
  await created(stage, 100, {
    name: "tpl",
    tags: "t",
    scsi0: "local-zfs:1",
    net0: "virtio,bridge=vmbr0",
  });
  assert.equal(await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 }), "OK");
  const [source, copy] = [await stage.config(100), await stage.config(101)];
  assert.equal(copy["name"], "Copy-of-VM-tpl");
  assert.equal(copy["tags"], "t");
  for (const key of ["smbios1", "vmgenid", "net0", "digest"]) {
    assert.notEqual(copy[key], source[key], key);
  }
  assert.equal(await stage.does("POST", `${qemu}/100/template`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/clone`, { newid: 102 }), "OK");
  const linked = "local-zfs:base-100-disk-0/vm-102-disk-0";
  assert.equal((await stage.config(102))["scsi0"], `${linked},size=1G`);
  const refused = "base volume 'local-zfs:base-100-disk-0' is still in use by linked cloned";
  assert.equal(await stage.does("DELETE", `${qemu}/100`), refused);
  assert.equal(await stage.does("DELETE", `${qemu}/102`), "OK");
  assert.equal(await stage.does("DELETE", `${qemu}/100`), "OK");
});

test("a killed clone leaves its lock, and what it had copied", async () => {
  const stage = new Stage();
  await created(stage, 100, { name: "src", scsi0: "local:1" });
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmclone:100" && step.name === "qemu-img convert",
  });
  const end = await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 });
  assert.equal(end, "unexpected status");
  assert.equal((await stage.config(101))["lock"], "clone");
  assert.deepEqual(await stage.volumes(101), ["local:101/vm-101-disk-0.raw"]);
});

test("a disk can be handed over to another guest without copying it", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  await created(stage, 101);
  const params = { disk: "scsi0", "target-vmid": 101, "target-disk": "scsi3" };
  assert.equal(await stage.does("POST", `${qemu}/100/move_disk`, params), "OK");
  assert.equal((await stage.config(100))["scsi0"], undefined);
  assert.equal((await stage.config(101))["scsi3"], "local-zfs:vm-101-disk-0,size=1G");
});

test("a migrated guest is found on its new node only, with its local disks", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  const local = await stage.call("POST", `${qemu}/100/migrate`, { target: "pve1" });
  assert.equal(local.status, 400);
  assert.equal(await stage.does("POST", `${qemu}/100/migrate`, { target: "pve2" }), "OK");
  assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
  assert.equal((await stage.config(100, "pve2"))["scsi0"], "local-zfs:vm-100-disk-0,size=1G");
  assert.deepEqual(await stage.volumes(100, "local-zfs", "pve1"), []);
  assert.equal((await stage.volumes(100, "local-zfs", "pve2")).length, 1);
});

test("a killed migration leaves its lock on the source and a copy on the target", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name.startsWith("copy local-zfs:"),
  });
  const end = await stage.does("POST", `${qemu}/100/migrate`, { target: "pve2" });
  assert.equal(end, "unexpected status");
  assert.equal((await stage.config(100))["lock"], "migrate");
  assert.equal((await stage.volumes(100, "local-zfs", "pve2")).length, 1);
});

test("a managed guest is only asked for: the task ends before the machine runs", async () => {
  const stage = new Stage();
  await created(stage, 100, { "ha-managed": 1 });
  const { data } = await stage.call("POST", `${qemu}/100/status/start`);
  assert.match(String(data), /:hastart:100:/);
  assert.equal(await stage.taskEnd(data), "OK");
  assert.equal(stage.model.cluster.isRunning("pve1", 100), false);
  assert.match(await stage.does("DELETE", `${qemu}/100`), /used in HA resources/);
});

test("a volume that cannot be freed is leaked with a warning, in 8.4 without a word", async () => {
  const ends = { "9.2": "WARNINGS: 1", "8.4": "OK" } as const;
  for (const release of ["9.2", "8.4"] as const) {
    const stage = new Stage(release);
    await created(stage, 100, { scsi0: "local-zfs:1" });
    stage.model.faults.onStep({
      verdict: { kind: "fail", error: new Error("dataset is busy") },
      matches: (_, step) => step.name.startsWith("free local-zfs:"),
    });
    assert.equal(await stage.does("DELETE", `${qemu}/100`), ends[release]);
    assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
    assert.deepEqual(await stage.volumes(100, "local-zfs"), ["local-zfs:vm-100-disk-0"]);
  }
});

test("changes under a flock that is held too long are refused, reads are not", async () => {
  const stage = new Stage("8.4");
  await created(stage, 100);
  stage.model.cluster.slowStorageMs = 25_000;
  const { data: upid } = await stage.call("POST", `${qemu}/100/config`, { scsi0: "local:1" });
  stage.clock.advance(1_000);
  const refused = await stage.call("PUT", `${qemu}/100/config`, { name: "x" });
  const text = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
  assert.equal(refused.reason, text);
  assert.equal((await stage.config(100))["name"], undefined);
  assert.equal(await stage.taskEnd(upid), "OK");
});

test("allocations of one shared storage wait for each other in the whole cluster", async () => {
  const stage = new Stage();
  stage.model.cluster.slowStorageMs = 15_000;
  const first = await stage.call("POST", "/nodes/pve1/qemu", { vmid: 100, scsi0: "shared:1" });
  const second = await stage.call("POST", "/nodes/pve2/qemu", { vmid: 101, scsi0: "shared:1" });
  assert.equal(await stage.taskEnd(first.data), "OK");
  const end = await stage.taskEnd(second.data);
  assert.match(end, /cfs-lock 'storage-shared' error: got lock request timeout$/);
});
