import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Survey } from "../../hypervisor/index.ts";
import { data, driverOn, error, ScriptedServer } from "./fixture.ts";
import type { PveReply } from "./wire/wire.ts";

// What a survey does not show is taken for gone. So all that could not be seen has to be named.

const volume = "zfs:vm-200-disk-0";
const rights = {
  "/": { "Sys.Audit": 1 },
  "/vms": { "VM.Audit": 1 },
  "/storage": { "Datastore.Allocate": 1 },
};
const node = { type: "node", node: "pve1", status: "online" };
const storage = {
  type: "storage",
  storage: "zfs",
  node: "pve1",
  status: "available",
  content: "images,iso",
};
const vm = { type: "qemu", vmid: 300, node: "pve1", status: "stopped" };
const content = "GET /nodes/pve1/storage/zfs/content";
const config = "GET /nodes/pve1/qemu/300/config";

async function survey(
  rows: readonly object[],
  more: Record<string, PveReply> = {},
): Promise<Survey> {
  const server = new ScriptedServer({
    "GET /cluster/resources": data([node, ...rows]),
    "GET /access/permissions": data(rights),
    [content]: data([{ volid: volume, vmid: 200, content: "images", size: 1 }]),
    [config]: data({ digest: "d", name: "x" }),
    ...more,
  });
  const surveyed = await driverOn(server).survey([]);
  assert(surveyed.ok, JSON.stringify(surveyed));
  return surveyed.value;
}

describe("a survey", () => {
  it("is whole where everything was seen, and shows the volume whose VM is not there", async () => {
    const { missing, volumes } = await survey([storage, vm]);
    assert.deepEqual(missing, []);
    assert.deepEqual(
      volumes.map((found) => found.volume),
      [volume],
    );
  });

  it("names a storage that could not be read: the disks on it are not gone", async () => {
    const { missing } = await survey([storage], { [content]: error(500, "not mounted") });
    assert.deepEqual(missing, ["the storage zfs on pve1"]);
  });

  it("names a storage that is not mounted: the disks on it are not gone", async () => {
    const { missing } = await survey([{ ...storage, status: "unknown" }]);
    assert.deepEqual(missing, ["the storage zfs on pve1"]);
  });

  it("names a VM that could not be read: its disks may look like nobody's", async () => {
    const { missing } = await survey([storage, vm], { [config]: error(595, "No route to host") });
    assert.deepEqual(missing, ["the machine 300"]);
  });

  it("names what the token may not see: a list leaves it out in silence", async () => {
    const permissions = { ...rights, "/vms": {} };
    const { missing } = await survey([storage], { "GET /access/permissions": data(permissions) });
    assert.deepEqual(missing, ["what needs VM.Audit on /vms"]);
  });

  it("does not call a volume nobody's that a VM of another id uses", async () => {
    const used = { digest: "d", scsi3: `${volume},size=1G` };
    assert.deepEqual((await survey([storage, vm], { [config]: data(used) })).volumes, []);
  });

  it("does not call a volume nobody's whose VM is there", async () => {
    const there = { ...vm, vmid: 200 };
    const own = { "GET /nodes/pve1/qemu/200/config": data({ digest: "d" }) };
    assert.deepEqual((await survey([storage, there], own)).volumes, []);
  });

  const away = { ...vm, vmid: 200, node: "pve2" };
  const awayConfig = { "GET /nodes/pve2/qemu/200/config": data({ digest: "d" }) };
  const awayNode = { ...node, node: "pve2" };
  const awayStorage = { ...storage, node: "pve2" };
  const awayContent = "GET /nodes/pve2/storage/zfs/content";

  it("shows a volume whose VM is on another node and has no such volume there", async () => {
    const rows = [storage, awayNode, awayStorage, away];
    const found = await survey(rows, { ...awayConfig, [awayContent]: data([]) });
    assert.deepEqual(
      found.volumes.map((one) => [one.volume, one.node, one.vmNode]),
      [[volume, "pve1", "pve2"]],
    );
  });

  it("does not call a replica nobody's: the VM's own node has a volume of that name", async () => {
    const same = data([{ volid: volume, vmid: 200, content: "images", size: 1 }]);
    const rows = [storage, awayNode, awayStorage, away];
    const found = await survey(rows, { ...awayConfig, [awayContent]: same });
    assert.deepEqual(found.volumes, []);
  });

  it("does not judge the volumes of a container on another node", async () => {
    const rows = [storage, awayNode, awayStorage, { ...away, type: "lxc" }];
    assert.deepEqual((await survey(rows, { [awayContent]: data([]) })).volumes, []);
  });

  it("does not show a person's files as Berth's", async () => {
    const listed = data([{ volid: "zfs:iso/debian.iso", content: "iso", size: 1 }]);
    assert.deepEqual((await survey([storage], { [content]: listed })).files, []);
  });
});

describe("an inventory", () => {
  it("without a single node is not whole: nothing on it is gone", async () => {
    const server = new ScriptedServer({ "GET /cluster/resources": data([]) });
    const inventory = await driverOn(server).inventory();
    assert(inventory.ok);
    assert.equal(inventory.value.isComplete, false);
  });
});

describe("an id that is proposed", () => {
  it("is not one that the last inventory shows in use", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": data([node, { ...vm, vmid: 1_000_000 }]),
      "GET /cluster/nextid": data("1000000"),
    });
    const driver = driverOn(server);
    await driver.inventory();
    assert.equal((await driver.propose([])).ok, false, "of these tests' random the first id");
  });
});
