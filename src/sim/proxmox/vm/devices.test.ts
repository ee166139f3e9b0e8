import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const gpu = "0000:01:00.0";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

/** A cluster in which pve1 and pve2 have a graphics card, and its name is "gpu". */
async function withGpu(release: "8.4" | "9.2" = "9.2"): Promise<Stage> {
  const stage = new Stage(release);
  for (const node of ["pve1", "pve2"]) {
    const device = { kind: "pci", id: "10de:1db6", name: "V100" } as const;
    stage.model.cluster.node(node).devices = { [gpu]: device };
  }
  const map = ["pve1", "pve2"].map((node) => `node=${node},path=${gpu},id=10de:1db6`);
  for (const [index, entry] of map.entries()) {
    const id = index === 0 ? "gpu" : "gpu2";
    const reply = await stage.call("POST", "/cluster/mapping/pci", { id, map: entry });
    assert.equal(reply.status, 200, reply.reason);
  }
  const mapping = stage.model.cluster.state.mappings?.["pci/gpu"];
  assert.ok(mapping);
  mapping.map = map;
  return stage;
}

test("firmware variables and a TPM take what their storage gives out, and no more", async () => {
  const stage = new Stage();
  stage.model.cluster.state.storages.push(
    { storage: "thin", type: "lvmthin", vgname: "pve", thinpool: "data", content: "images" },
    { storage: "ceph", type: "rbd", pool: "rbd", content: "images" },
  );
  const sizes = { local: "528K", "local-zfs": "1M", thin: "4M", ceph: "1M" };
  for (const [index, [storage, size]] of Object.entries(sizes).entries()) {
    const vmid = 100 + index;
    const disks = { efidisk0: `${storage}:1,efitype=4m`, tpmstate0: `${storage}:1,version=v2.0` };
    await created(stage, vmid, { bios: "ovmf", ...disks });
    const config = await stage.config(vmid);
    assert.match(String(config["efidisk0"]), new RegExp(`,efitype=4m,size=${size}$`));
    assert.match(String(config["tpmstate0"]), /,size=4M,version=v2\.0$/);
  }
});

test("the version of a TPM stays as it was made", async () => {
  const stage = new Stage();
  await created(stage, 100, { tpmstate0: "local:1,version=v2.0" });
  const file = String((await stage.config(100))["tpmstate0"]).split(",")[0];
  const changed = await stage.call("PUT", `${qemu}/100/config`, {
    tpmstate0: `${file},version=v1.2`,
  });
  assert.equal(changed.reason, "cannot change TPM state version after creation");
});

test("a TPM is not cloned while the guest runs", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1", tpmstate0: "local:1,version=v2.0" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const refused = await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 });
  assert.equal(refused, "500 cannot clone TPM state while VM is running");
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 }), "OK");
});

test("a medium is changed in any drive while the guest runs; a new CD drive can be booted", async () => {
  const stage = new Stage();
  const iso = { name: "iso/a.iso", content: "iso", format: "iso" } as const;
  const volumes = stage.model.cluster.state.volumes["pve1:/var/lib/vz"] ?? [];
  const sizes = { sizeBytes: 1024, usedBytes: 1024, createdMs: 0 };
  volumes.push({ ...iso, ...sizes }, { ...iso, ...sizes, name: "iso/b.iso" });
  await created(stage, 100, { scsi0: "local:1", ide2: "local:iso/a.iso,media=cdrom" });
  assert.equal((await stage.config(100))["boot"], "order=scsi0;ide2");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  for (const file of ["local:iso/b.iso", "none"]) {
    const reply = await stage.call("PUT", `${qemu}/100/config`, { ide2: `${file},media=cdrom` });
    assert.equal(reply.status, 200, reply.reason);
    const { data } = await stage.call("GET", `${qemu}/100/config`, { current: 1 });
    assert.match(String(membersOf(data)["ide2"]), new RegExp(`^${file},media=cdrom`));
  }
  const disk = await stage.does("POST", `${qemu}/100/config`, { ide2: "local:1" });
  assert.match(disk, /ide2: hotplug problem - unable to change media type$/);
});

test("a token passes a device through by its mapping only, and with the right to it", async () => {
  const stage = await withGpu();
  const plain = await stage.does("POST", qemu, { vmid: 100, hostpci0: gpu });
  assert.equal(plain, "500 only root can set 'hostpci0' config for non-mapped devices");
  const usb = await stage.does("POST", qemu, { vmid: 100, usb0: "host=1-2" });
  assert.equal(usb, "500 only root can set 'usb0' config for real devices");
  await created(stage, 100, { hostpci0: "mapping=gpu" });
  stage.model.cluster.state.acl.push({
    path: "/mapping",
    type: "user",
    ugid: "berth@pve",
    roleid: "NoAccess",
    propagate: 1,
  });
  const refused = await stage.does("POST", qemu, { vmid: 101, hostpci0: "mapping=gpu" });
  assert.equal(refused, "403 Permission check failed (/mapping/pci/gpu, Mapping.Use)");
  const removed = await stage.call("PUT", `${qemu}/100/config`, { delete: "hostpci0" });
  assert.equal(removed.status, 403);
});

test("release 7 knows no mappings: a card is for root@pam alone", async () => {
  const stage = new Stage("7.4");
  const refused = await stage.does("POST", qemu, { vmid: 100, hostpci0: gpu });
  assert.equal(refused, "500 only root can set 'hostpci0' config");
  assert.equal((await stage.call("GET", "/cluster/mapping/pci")).status, 501);
});

test("a card belongs to one running guest, and must still be the one that was mapped", async () => {
  const stage = await withGpu();
  await created(stage, 100, { hostpci0: "mapping=gpu" });
  await created(stage, 101, { hostpci0: "mapping=gpu" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const start = (vmid: number): Promise<string> =>
    stage.does("POST", `${qemu}/${vmid}/status/start`);
  assert.equal(await start(101), `PCI device '${gpu}' already in use by VMID '100'`);
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  assert.equal(await start(101), "OK");
  stage.model.cluster.node("pve1").devices = { [gpu]: { kind: "pci", id: "10de:ffff", name: "" } };
  assert.match(await start(100), /^PCI device mapping invalid \(hardware probably changed\)/);
});

test("a mapped guest goes where its device is, off only, and says what is in the way", async () => {
  const stage = await withGpu();
  await created(stage, 100, { hostpci0: "mapping=gpu" });
  const { data } = await stage.call("GET", `${qemu}/100/migrate`);
  assert.deepEqual(membersOf(data)["allowed_nodes"], ["pve2"]);
  assert.equal(
    await stage.does("POST", `${qemu}/100/migrate`, { target: "pve3" }),
    "migration aborted",
  );
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const live = { target: "pve2", online: 1 };
  assert.equal(await stage.does("POST", `${qemu}/100/migrate`, live), "migration aborted");
  const suspended = await stage.does("POST", `${qemu}/100/status/suspend`, { todisk: 1 });
  assert.match(suspended, /^500 cannot suspend VM to disk due to passed-through PCI device/);
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/migrate`, { target: "pve2" }), "OK");
});
