import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const gib = 1024 ** 3;

/** A cluster with a storage of each kind. */
function stageOfAll(release: "8.4" | "9.2" = "9.2"): Stage {
  const stage = new Stage(release);
  stage.model.cluster.state.storages.push(
    { storage: "thin", type: "lvmthin", vgname: "pve", thinpool: "data", content: "images" },
    { storage: "ceph", type: "rbd", pool: "rbd", content: "images" },
  );
  return stage;
}

/** The kinds, each with the place of its bytes. */
const kinds = {
  local: "pve1:/var/lib/vz",
  "local-zfs": "pve1:rpool/data",
  thin: "pve1:pve/data",
  ceph: "shared:rbd",
  shared: "shared:192.0.2.2:/export/shared",
} as const;
type Kind = keyof typeof kinds;
const all = Object.keys(kinds) as Kind[]; // cast: the keys of a literal.

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

const names: Readonly<Record<Kind, { disk: string; base: string; linked: string }>> = {
  local: {
    disk: "100/vm-100-disk-0.raw",
    base: "100/base-100-disk-0.raw",
    linked: "100/base-100-disk-0.raw/101/vm-101-disk-0.qcow2",
  },
  shared: {
    disk: "100/vm-100-disk-0.raw",
    base: "100/base-100-disk-0.raw",
    linked: "100/base-100-disk-0.raw/101/vm-101-disk-0.qcow2",
  },
  "local-zfs": {
    disk: "vm-100-disk-0",
    base: "base-100-disk-0",
    linked: "base-100-disk-0/vm-101-disk-0",
  },
  ceph: {
    disk: "vm-100-disk-0",
    base: "base-100-disk-0",
    linked: "base-100-disk-0/vm-101-disk-0",
  },
  // A thin volume does not depend on what it was made from, and its name does not say it.
  thin: { disk: "vm-100-disk-0", base: "base-100-disk-0", linked: "vm-101-disk-0" },
};

for (const kind of all) {
  test(`${kind}: disks, bases and linked clones have its names`, async () => {
    const stage = stageOfAll();
    await created(stage, 100, { scsi0: `${kind}:1` });
    assert.equal((await stage.config(100))["scsi0"], `${kind}:${names[kind].disk},size=1G`);
    assert.equal(await stage.does("POST", `${qemu}/100/template`), "OK");
    assert.equal((await stage.config(100))["scsi0"], `${kind}:${names[kind].base},size=1G`);
    assert.equal(await stage.does("POST", `${qemu}/100/clone`, { newid: 101 }), "OK");
    assert.equal((await stage.config(101))["scsi0"], `${kind}:${names[kind].linked},size=1G`);
    const end = await stage.does("DELETE", `${qemu}/100`);
    const inUse = `base volume '${kind}:${names[kind].base}' is still in use by linked cloned`;
    assert.equal(end, kind === "thin" ? "OK" : inUse);
  });
}

const leftovers: Readonly<Record<Kind, RegExp>> = {
  local: /disk image '\/var\/lib\/vz\/images\/100\/vm-100-cloudinit\.qcow2' already exists$/,
  shared: /disk image '\/mnt\/pve\/shared\/images\/100\/vm-100-cloudinit\.qcow2' already exists$/,
  "local-zfs": /zfs error: cannot create 'rpool\/data\/vm-100-cloudinit': dataset already exists$/,
  thin: /lvcreate 'pve\/vm-100-cloudinit' error: {3}Logical Volume "vm-100-cloudinit" already exists/,
  ceph: /rbd create 'vm-100-cloudinit' error: rbd: create error: \(17\) File exists$/,
};

for (const kind of all) {
  test(`${kind}: a leftover disk takes its number, a leftover cloud-init drive the way`, async () => {
    const stage = stageOfAll();
    await created(stage, 100, {
      scsi0: `${kind}:1`,
      scsi1: `${kind}:1`,
      ide2: `${kind}:cloudinit`,
    });
    stage.model.removeGuestFile(100);
    stage.model.removeVolume("pve1", `${kind}:${names[kind].disk}`);
    await created(stage, 100, { scsi0: `${kind}:1`, scsi1: `${kind}:1` });
    const config = await stage.config(100);
    const taken = ["scsi0", "scsi1"].map((key) => /disk-(\d)/.exec(String(config[key]))?.[1]);
    assert.deepEqual(taken, ["0", "2"]);
    const end = await stage.does("PUT", `${qemu}/100/config`, { ide2: `${kind}:cloudinit` });
    assert.match(end, leftovers[kind]);
  });
}

for (const kind of all) {
  const isFile = kind === "local" || kind === "shared";
  const extension = isFile ? ".qcow2" : "";
  const path = `/nodes/pve1/storage/${kind}/content`;

  test(`${kind}: a volume by name is made at once, and only once`, async () => {
    const stage = stageOfAll();
    await created(stage, 100);
    const filename = `vm-100-berth-1${extension}`;
    const params = { filename, vmid: 100, size: "1048576", format: isFile ? "qcow2" : "raw" };
    const made = await stage.call("POST", path, params);
    const volid = `${kind}:${isFile ? "100/" : ""}${filename}`;
    assert.deepEqual([made.status, made.data], [200, volid]);
    assert.match((await stage.call("POST", path, params)).reason, /already exists|File exists/);
    assert.equal(await stage.does("POST", `${qemu}/100/config`, { scsi1: volid }), "OK");
    assert.equal((await stage.config(100))["scsi1"], `${volid},size=1G`);
  });

  test(`${kind}: a volume by name has to have a name as the storage wants it`, async () => {
    const stage = stageOfAll();
    const params = { filename: "foo", vmid: 100, size: "8M" };
    const expected = isFile
      ? "unable to parse volume filename 'foo'"
      : "illegal name 'foo' - should be 'vm-100-*'";
    assert.equal((await stage.call("POST", path, params)).reason, expected);
  });
}

test("a new volume on files has the format of the storage where none is asked for", async () => {
  const stage = stageOfAll();
  const local = stage.model.cluster.state.storages.find(({ storage }) => storage === "local");
  assert(local !== undefined);
  local.format = "qcow2";
  await created(stage, 100, { scsi0: "local:1" });
  assert.equal((await stage.config(100))["scsi0"], "local:100/vm-100-disk-0.qcow2,size=1G");
});

const fulls: Readonly<Record<Kind, RegExp | "OK">> = {
  local: /unable to create image: No space left on device$/,
  shared: /unable to create image: No space left on device$/,
  "local-zfs": /zfs error: cannot create 'rpool\/data\/vm-101-disk-0': out of space$/,
  thin: /lvcreate 'pve\/vm-101-disk-0' error: {3}Cannot create new thin volume/,
  ceph: "OK",
};

for (const kind of all) {
  test(`${kind}: what it says when it is full, and what it only promises`, async () => {
    const stage = stageOfAll();
    const image = "import-from=local:import/debian-12-generic-amd64.qcow2";
    stage.model.setCapacity(kinds[kind], 4 * gib);
    const copied = { vmid: 100, scsi0: `${kind}:0,${image}` };
    assert.equal(await stage.does("POST", qemu, copied), "OK");
    const large = await stage.does("POST", qemu, { vmid: 102, scsi0: `${kind}:100` });
    const isReserved = kind === "local-zfs";
    assert.equal(large === "OK", !isReserved, "all but a zvol are thin");
    const copy = await stage.does("POST", qemu, { vmid: 103, scsi0: `${kind}:0,${image}` });
    assert.match(copy, isReserved ? /out of space$/ : /No space left on device$/);
    assert.equal((await stage.call("GET", `${qemu}/103/config`)).status, 500);
    stage.model.setCapacity(kinds[kind], gib);
    const full = await stage.does("POST", qemu, { vmid: 101, scsi0: `${kind}:1` });
    const expected = fulls[kind];
    if (expected === "OK") assert.equal(full, "OK");
    else assert.match(full, expected);
  });
}

const unreachable: Readonly<Record<Kind, RegExp>> = {
  local: /unable to activate storage 'local' - directory is expected to be a mount point/,
  shared: /storage 'shared' is not online$/,
  "local-zfs": /could not activate storage 'local-zfs', zfs error: cannot import 'rpool'/,
  thin: /no such volume group 'pve'$/,
  ceph: /rbd error: rbd: couldn't connect to the cluster!$/,
};

for (const kind of all) {
  test(`${kind}: one that cannot be reached fails whoever needs it, and leaks at destroy`, async () => {
    const stage = stageOfAll();
    await created(stage, 100, { scsi0: `${kind}:1` });
    stage.model.faults.offline.add(kinds[kind]);
    const text = unreachable[kind];
    assert.match(await stage.does("POST", `${qemu}/100/status/start`), text);
    assert.match(await stage.does("POST", qemu, { vmid: 101, scsi0: `${kind}:1` }), text);
    const content = await stage.call("GET", `/nodes/pve1/storage/${kind}/content`);
    assert.match(content.reason, text);
    const { data } = await stage.call("GET", `/nodes/pve1/storage/${kind}/status`);
    assert.deepEqual([membersOf(data)["active"], membersOf(data)["total"]], [0, 0]);
    assert.equal(await stage.does("DELETE", `${qemu}/100`), "WARNINGS: 1");
    stage.model.faults.offline.clear();
    assert.equal((await stage.volumes(100, kind)).length, 1);
  });
}

const busy: Readonly<Record<Kind, RegExp | "OK">> = {
  local: "OK",
  shared: "OK",
  "local-zfs": /zfs error: cannot destroy 'rpool\/data\/vm-100-disk-0': dataset is busy$/,
  thin: /lvremove 'pve\/vm-100-disk-0' error: {3}Logical volume pve\/vm-100-disk-0 in use\.$/,
  ceph: /rbd rm 'vm-100-disk-0' error: rbd: error: image still has watchers/,
};

for (const kind of all) {
  const fate = busy[kind] === "OK" ? "unlinked" : "busy";
  test(`${kind}: a disk of a running guest is ${fate}`, async () => {
    const stage = stageOfAll();
    await created(stage, 100, { scsi0: `${kind}:1` });
    assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
    const volume = `/nodes/pve1/storage/${kind}/content/${kind}:${names[kind].disk}`;
    const end = await stage.does("DELETE", volume);
    const expected = busy[kind];
    if (expected === "OK") assert.equal(end, "OK");
    else assert.match(end, expected);
  });
}

test("a copy whose worker was killed still writes: zfs says busy for a while", async () => {
  const stage = stageOfAll();
  await created(stage, 100);
  stage.model.cluster.slowStorageMs = 20_000;
  const image = "local-zfs:0,import-from=local:import/debian-12-generic-amd64.qcow2";
  const { data: upid } = await stage.call("POST", `${qemu}/100/config`, { scsi0: image });
  stage.clock.advance(25_000);
  stage.model.killWorker(String(upid));
  stage.model.cluster.slowStorageMs = 0;
  const volume = "/nodes/pve1/storage/local-zfs/content/local-zfs:vm-100-disk-0";
  assert.match(await stage.does("DELETE", volume), /dataset is busy$/);
  stage.clock.advance(30_000);
  assert.equal(await stage.does("DELETE", volume), "OK");
});

test("a local storage is another one on each node, a shared one the same", async () => {
  const stage = stageOfAll();
  await created(stage, 100, { scsi0: "local-zfs:1", scsi1: "shared:1" });
  assert.deepEqual(await stage.volumes(100, "local-zfs", "pve2"), []);
  assert.equal((await stage.volumes(100, "shared", "pve2")).length, 1);
});

test("two clusters on one export take each other's volumes for their own", async () => {
  const [ours, theirs] = [new Stage(), new Stage()];
  theirs.model.share(ours.model, kinds.shared);
  await created(theirs, 100, { scsi0: "shared:1" });
  assert.equal((await ours.call("GET", "/cluster/nextid", { vmid: 100 })).data, "100");
  await created(ours, 100, { scsi0: "shared:1" });
  assert.match(String((await ours.config(100))["scsi0"]), /vm-100-disk-1\.raw/);
  const destroy = { purge: 1, "destroy-unreferenced-disks": 1 };
  assert.equal(await ours.does("DELETE", `${qemu}/100`, destroy), "OK");
  assert.deepEqual(await theirs.volumes(100, "shared"), [], "theirs is gone too");
});

test("a storage that is disabled, missing or of another node is told apart", async () => {
  const stage = stageOfAll();
  const { storages } = stage.model.cluster.state;
  storages.push({ storage: "off", type: "dir", path: "/off", content: "images", disable: 1 });
  storages.push({ storage: "far", type: "dir", path: "/far", content: "images", nodes: "pve2" });
  const create = (storage: string): Promise<string> =>
    stage.does("POST", qemu, { vmid: 100, scsi0: `${storage}:1` });
  assert.match(await create("off"), /storage 'off' is disabled$/);
  assert.match(await create("far"), /storage 'far' is not available on node 'pve1'$/);
  assert.match(await create("nosuch"), /storage 'nosuch' does not exist$/);
});

test("a shared storage is not written without quorum, a local one is", async () => {
  const stage = stageOfAll();
  await created(stage, 100, { scsi0: "shared:1" });
  stage.model.faults.hasNoQuorum = true;
  const free = (storage: string, name: string): Promise<string> =>
    stage.does("DELETE", `/nodes/pve1/storage/${storage}/content/${storage}:${name}`);
  assert.match(
    await free("shared", names.shared.disk),
    /cfs-lock 'storage-shared' error: no quorum!$/,
  );
  assert.equal(await free("local", names.local.disk), "OK");
});
