import assert from "node:assert/strict";
import { test } from "node:test";
import { PveClient, type Result } from "@corsinvest/cv4pve-api-javascript";
import "../support/cleanup.ts";
import { type Ground, prepareGround, releases, vmids, volumesOf } from "./support.ts";

const node = "pve1";
const vmid = 120;

for (const release of releases) {
  test(`cv4pve-api-javascript works against ${release}`, async (t) => {
    const ground = await prepareGround(t, release);
    const client = withToken(ground);

    await t.test("a login by password gives a ticket that may write", () => login(ground));
    await t.test("it lists nodes, storages and VMs", () => look(client, ground));
    await t.test("it creates a VM with disk and cloud-init drive", () => create(client, ground));
    await t.test("it changes and enlarges the VM", () => change(client));
    await t.test("it takes a snapshot, and rolls back to it", () => snapshot(client));
    await t.test("it starts and stops the VM", () => power(client));
    await t.test("it destroys the VM with all its volumes", () => destroy(client, ground));
    await t.test("failures reach it as the real ones do", () => fail(client, ground));
  });
}

function connect({ simulator }: Ground): PveClient {
  const { hostname, port } = new URL(simulator.url);
  return new PveClient(hostname, Number(port));
}

function withToken(ground: Ground): PveClient {
  const client = connect(ground);
  client.apiToken = `${ground.simulator.tokenId}=${ground.simulator.tokenSecret}`;
  return client;
}

async function login(ground: Ground): Promise<void> {
  const { user, password } = ground.simulator;
  const [name = "", realm = ""] = user.split("@");
  const client = connect(ground);
  assert.equal(await client.login(name, password, realm), true);
  assert.equal(client.lastResult.response.data.username, user);
  assert.equal(client.lastResult.response.data.clustername, "sim");
  assert.equal(client.lastResult.response.data.cap.vms["VM.Allocate"], 1);
  const made = await client.create("/pools", { poolid: "by-ticket" });
  assert.equal(made.statusCode, 200);
  assert.equal(await connect(ground).login(name, "wrong", realm), false);
}

async function look(client: PveClient, { release }: Ground): Promise<void> {
  const { version } = (await client.version.version()).response.data;
  assert.ok(version.startsWith(release), version);
  const nodes = (await client.nodes.index()).response.data;
  const names = nodes.map((each: { node: string }) => each.node);
  assert.deepEqual(names.toSorted(), ["pve1", "pve2", "pve3"]);
  const storages = (await client.get(`/nodes/${node}/storage`)).response.data;
  assert.ok(storages.some((each: { storage: string }) => each.storage === "local-zfs"));
  assert.deepEqual((await client.nodes.get(node).qemu.vmlist(false)).response.data, []);
}

async function create(client: PveClient, { release, image }: Ground): Promise<void> {
  const free = (await client.cluster.nextid.nextid(vmid)).response.data;
  assert.equal(free, String(vmid));
  const disk = release === "7.4" ? "local-zfs:4" : `local-zfs:0,import-from=${image}`;
  await finish(
    client,
    await client.create(`/nodes/${node}/qemu`, {
      vmid,
      name: "client",
      cores: 2,
      memory: 1024,
      net0: "virtio,bridge=vmbr0",
      scsihw: "virtio-scsi-pci",
      scsi0: disk,
      ide2: "local-zfs:cloudinit",
      ciuser: "admin",
      ipconfig0: "ip=dhcp",
      onboot: true,
    }),
  );
  const config = await configOf(client);
  assert.deepEqual([config.name, config.cores, Number(config.memory)], ["client", 2, 1024]);
  assert.match(config.scsi0, /^local-zfs:vm-120-disk-\d,size=[34]G$/);
  assert.equal(config.ide2, "local-zfs:vm-120-cloudinit,media=cdrom");
  assert.match(config.net0, /^virtio=([0-9A-F]{2}:){5}[0-9A-F]{2},bridge=vmbr0$/);
}

async function change(client: PveClient): Promise<void> {
  const { digest } = await configOf(client);
  const settings = { cores: 4, memory: 2048, tags: "client,changed", digest };
  const changed = await client.set(`/nodes/${node}/qemu/${vmid}/config`, settings);
  assert.equal(changed.statusCode, 200);
  const resized = await client.set(`/nodes/${node}/qemu/${vmid}/resize`, {
    disk: "scsi0",
    size: "12G",
  });
  // 7.4 does it at once; since 8 it is a task.
  if (resized.response.data !== null) await finish(client, resized);
  const config = await configOf(client);
  assert.deepEqual([config.cores, Number(config.memory)], [4, 2048]);
  assert.match(config.scsi0, /,size=12G$/);
  assert.equal(config.tags, "changed;client");
}

async function snapshot(client: PveClient): Promise<void> {
  const path = `/nodes/${node}/qemu/${vmid}/snapshot`;
  await finish(client, await client.create(path, { snapname: "before", description: "a story" }));
  await client.set(`/nodes/${node}/qemu/${vmid}/config`, { cores: 8 });
  const rows = (await client.get(path)).response.data;
  assert.deepEqual(rows.map(({ name }: { name: string }) => name).toSorted(), [
    "before",
    "current",
  ]);
  await finish(client, await client.create(`${path}/before/rollback`));
  assert.equal((await configOf(client)).cores, 4);
  await finish(client, await client.delete(`${path}/before`));
}

async function power(client: PveClient): Promise<void> {
  const path = `/nodes/${node}/qemu/${vmid}/status`;
  await finish(client, await client.create(`${path}/start`));
  assert.equal((await client.get(`${path}/current`)).response.data.status, "running");
  await finish(client, await client.create(`${path}/stop`));
  assert.equal((await client.get(`${path}/current`)).response.data.status, "stopped");
}

async function destroy(client: PveClient, ground: Ground): Promise<void> {
  const options = { purge: true, "destroy-unreferenced-disks": true };
  await finish(client, await client.delete(`/nodes/${node}/qemu/${vmid}`, options));
  assert.deepEqual(await vmids(ground), []);
  assert.deepEqual(await volumesOf(ground, vmid), []);
}

async function fail(client: PveClient, { release }: Ground): Promise<void> {
  const absent = await client.get(`/nodes/${node}/qemu/${vmid}/config`);
  const text = `Configuration file 'nodes/${node}/qemu-server/${vmid}.conf' does not exist`;
  assert.deepEqual([absent.statusCode, absent.reasonPhrase], [500, text]);
  assert.equal(absent.response.message, release === "7.4" ? undefined : `${text}\n`);
  const wrong = await client.create(`/nodes/${node}/qemu`, { vmid, cores: "many" });
  assert.deepEqual([wrong.statusCode, wrong.responseInError], [400, true]);
  assert.match(wrong.response.errors.cores, /^type check \('integer'\) failed/);
  const started = await client.create(`/nodes/${node}/qemu`, { vmid, ide2: "nosuch:cloudinit" });
  await client.waitForTaskToFinish(started.response.data, 50);
  const exit = await client.getExitStatusTask(started.response.data);
  assert.match(exit, /storage 'nosuch' does not exist/);
}

// oxlint-disable-next-line typescript/no-explicit-any -- the client does not know what comes back
async function configOf(client: PveClient): Promise<any> {
  const result = await client.get(`/nodes/${node}/qemu/${vmid}/config`);
  assert.equal(result.statusCode, 200, result.reasonPhrase);
  return result.response.data;
}

/** Waits for the task that was started, which must end well. */
async function finish(client: PveClient, started: Result): Promise<void> {
  assert.equal(started.statusCode, 200, started.reasonPhrase);
  assert.equal(await client.waitForTaskToFinish(started.response.data, 50, 30_000), true);
  assert.equal(await client.getExitStatusTask(started.response.data), "OK");
}
