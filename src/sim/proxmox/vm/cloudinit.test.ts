import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";

async function created(stage: Stage, more = {}): Promise<void> {
  const create = { vmid: 100, scsi0: "local:1", ide2: "local-zfs:cloudinit", ...more };
  assert.equal(await stage.does("POST", qemu, create), "OK");
}

async function pending(stage: Stage): Promise<Record<string, unknown>[]> {
  const { data } = await stage.call("GET", `${qemu}/100/cloudinit`);
  return Array.isArray(data) ? data.map(membersOf) : [];
}

test("the drive of a running machine has the old values until it is made anew", async () => {
  const stage = new Stage();
  await created(stage, { ciuser: "one" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  await stage.call("PUT", `${qemu}/100/config`, { ciuser: "two", searchdomain: "example.org" });
  assert.deepEqual(await pending(stage), [
    { key: "ciuser", value: "one", pending: "two" },
    { key: "searchdomain", pending: "example.org" },
  ]);
  await stage.call("PUT", `${qemu}/100/config`, { ciuser: "one", delete: "searchdomain" });
  assert.deepEqual(await pending(stage), [{ key: "ciuser", value: "one" }]);
  await stage.call("PUT", `${qemu}/100/config`, { delete: "ciuser" });
  assert.deepEqual(await pending(stage), [{ key: "ciuser", delete: 1 }]);
  assert.equal((await stage.call("PUT", `${qemu}/100/cloudinit`)).status, 200);
  assert.deepEqual(await pending(stage), []);
});

test("a start makes the drive anew, and a plugged drive is made at once", async () => {
  const stage = new Stage();
  await created(stage, { ciuser: "one" });
  for (const hotplug of ["network", "network,cloudinit"]) {
    assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
    await stage.call("PUT", `${qemu}/100/config`, { ciuser: hotplug });
    const [row] = await pending(stage);
    assert.equal(row?.["pending"], hotplug.includes("cloudinit") ? undefined : hotplug);
    assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
    await stage.call("PUT", `${qemu}/100/config`, { hotplug: "network,cloudinit" });
  }
});

test("a password is stored as a hash, and shown as neither", async () => {
  const stage = new Stage();
  await created(stage);
  await stage.call("PUT", `${qemu}/100/config`, { cipassword: "plain" });
  assert.equal((await stage.config(100))["cipassword"], "**********");
  const text = stage.model.cluster.guestText("pve1", 100);
  assert.match(text, /^cipassword: \$5\$/m);
  assert.doesNotMatch(text, /plain/);
});

test("there is one cloud-init drive, under a fixed name, and it is freed when it goes", async () => {
  const stage = new Stage();
  await created(stage);
  assert.deepEqual(await stage.volumes(100, "local-zfs"), ["local-zfs:vm-100-cloudinit"]);
  const second = await stage.call("PUT", `${qemu}/100/config`, { ide0: "local:cloudinit" });
  assert.equal(second.reason, "ide0 - cloud-init drive is already attached at 'ide2'");
  await stage.call("PUT", `${qemu}/100/config`, { delete: "ide2" });
  assert.deepEqual(await stage.volumes(100, "local-zfs"), []);
  assert.equal((await stage.config(100))["unused0"], undefined);
});

test("what is on the drive can be read before there is one", async () => {
  const stage = new Stage();
  const net = {
    net0: "virtio=02:00:00:00:00:01,bridge=vmbr0",
    ipconfig0: "ip=10.0.0.2/24,gw=10.0.0.1",
  };
  await created(stage, { name: "web", ciuser: "me", nameserver: "10.0.0.1", ...net });
  const dump = async (type: string): Promise<string> =>
    String((await stage.call("GET", `${qemu}/100/cloudinit/dump`, { type })).data);
  assert.match(await dump("user"), /^#cloud-config\nhostname: web\n[^]*user: me\n/);
  assert.match(await dump("network"), /address: '10\.0\.0\.2'[^]*gateway: '10\.0\.0\.1'/);
  assert.match(await dump("meta"), /^instance-id: [0-9a-f]{40}\n$/);
});
