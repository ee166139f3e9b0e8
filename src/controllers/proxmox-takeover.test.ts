import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { eventsOf } from "./testing/events.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  until,
  type World,
} from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];

async function ready(world: World, name: string): Promise<VirtualMachine> {
  const isThere = await until(world, async () => isReady(await getVm(world.client, name)));
  const vm = await getVm(world.client, name);
  assert.ok(vm && isThere, JSON.stringify([vm?.status, world.log], undefined, 1));
  return vm;
}

function idOf({ status }: VirtualMachine): string {
  return status?.externalId ?? "";
}

async function remove(world: World, name: string): Promise<void> {
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name });
  const isGone = await until(world, async () => (await getVm(world.client, name)) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, name))?.status));
}

/** The wait for a person's word, in the status, in one Event and in one line of log. */
async function assertToldOnce(world: World, hash: string): Promise<void> {
  const waiting = await getVm(world.client, "web");
  assert.equal(condition(waiting, "Ready"), "False AwaitingApproval");
  assert.equal(waiting?.status?.waitingFor?.kind, "Approval");
  const told = world.log.filter((line) => /^info waits .*"for":"Approval"/.test(line));
  assert.equal(told.length, 1, told.join("\n"));
  const events = await eventsOf(world.client);
  const notes = events.flatMap(({ reason, note }) => (reason === "AwaitingApproval" ? note : []));
  assert.equal(notes.length, 1);
  assert.match(notes.join(), new RegExp(`berth.dev/approve to ${hash}\\.$`));
}

describe("a machine that was let go", () => {
  it("is taken back by an object of the same name, and no second one is made", async () => {
    const { world, proxmox } = await openProxmox();
    world.start();
    await createVm(world.client, "web", { disks, deletionPolicy: "Retain" });
    const before = await ready(world, "web");
    await remove(world, "web");
    assert.equal(Object.keys(proxmox.cluster.state.guests).length, 1);
    await createVm(world.client, "web", { disks });
    const after = await ready(world, "web");
    assert.equal(after.status?.externalId, before.status?.externalId);
    assert.equal(after.status?.identity, before.status?.identity);
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), [before.status?.externalId]);
    await remove(world, "web");
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
  });

  it("goes with that object, though its disks are older than the Claim that it got", async () => {
    const { world, proxmox } = await openProxmox();
    world.start();
    const spec = { disks: [{ name: "root", size: "10Gi", storage: "local" }] };
    await createVm(world.client, "web", { ...spec, deletionPolicy: "Retain" });
    await ready(world, "web");
    await remove(world, "web");
    await until(world, () => false, 3_600_000);
    await createVm(world.client, "web", spec);
    await ready(world, "web");
    await remove(world, "web");
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
  });

  it("sleeps on if it slept, with nothing of it changed, and is taken back all the same", async () => {
    const { world, proxmox, requests } = await openProxmox();
    world.start();
    const asleep = { disks, powerState: "Suspended" } as const;
    await createVm(world.client, "web", { ...asleep, deletionPolicy: "Retain" });
    const before = await ready(world, "web");
    const text = proxmox.cluster.state.guests[idOf(before)]?.text;
    requests.length = 0;
    await remove(world, "web");
    assert.deepEqual(
      requests.filter(({ method }) => method !== "GET"),
      [],
    );
    assert.equal(proxmox.cluster.state.guests[idOf(before)]?.text, text);
    const [claim] = await listClaims(world.client);
    assert.equal(claim?.spec.state, "Released");
    await createVm(world.client, "web", asleep);
    const after = await ready(world, "web");
    assert.equal(after.status?.identity, before.status?.identity);
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), [idOf(before)]);
  });

  it("waits for approval where it differs, and nothing of it is touched", async () => {
    const { world, proxmox } = await openProxmox();
    world.start();
    await createVm(world.client, "web", { disks, deletionPolicy: "Retain" });
    const id = idOf(await ready(world, "web"));
    await remove(world, "web");
    const text = proxmox.cluster.state.guests[id]?.text;
    await createVm(world.client, "web", { disks, cpu: { cores: 4 } });
    await until(world, async () => (await getVm(world.client, "web"))?.status?.plan !== undefined);
    await until(world, () => false, 300_000);
    const { hash, changes = [] } = (await getVm(world.client, "web"))?.status?.plan ?? {};
    assert.deepEqual(
      changes.map(({ field, effect }) => `${field} ${effect}`),
      ["spec.cpu.cores Reboot"],
    );
    assert.equal(proxmox.cluster.state.guests[id]?.text, text);
    await assertToldOnce(world, hash ?? "");
    const merge = { metadata: { annotations: { [annotations.approve]: hash } } };
    const at = { namespace: "default", name: "web" };
    await world.client.of(virtualMachineKind).patch(at, { merge });
    const vm = await ready(world, "web");
    assert.equal(idOf(vm), id);
    assert.equal(vm.status?.plan, undefined);
  });
});

describe("what no approval can bring about", () => {
  it("is refused before the machine is taken over, and goes on when it is declared as it is", async () => {
    const { world, proxmox } = await openProxmox();
    world.start();
    await createVm(world.client, "web", { disks, deletionPolicy: "Retain" });
    const id = idOf(await ready(world, "web"));
    await remove(world, "web");
    const text = proxmox.cluster.state.guests[id]?.text;
    const smaller = disks.map((disk) => ({ ...disk, size: "5Gi" }));
    await createVm(world.client, "web", { disks: smaller });
    await until(world, () => false, 300_000);
    const { failure, operation, plan } = (await getVm(world.client, "web"))?.status ?? {};
    assert.equal(failure?.category, "ReplacementRequired");
    assert.match(failure.message, /spec\.disks\[root\]\.size \(it has 10Gi\)/);
    assert.deepEqual([operation, plan], [undefined, undefined]);
    assert.equal(proxmox.cluster.state.guests[id]?.text, text);
    const at = { namespace: "default", name: "web" };
    await world.client.of(virtualMachineKind).patch(at, { merge: { spec: { disks } } });
    assert.equal(idOf(await ready(world, "web")), id);
  });
});

describe("a machine that nobody declared", () => {
  const guest =
    "cores: 2\nmemory: 2048\nname: old\nboot: order=scsi0\nagent: 1\nserial0: socket\n" +
    "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nscsi0: local-zfs:vm-500-disk-0,size=10G\n" +
    "smbios1: uuid=00000000-0000-4000-8000-00000000f00d\nsockets: 1\nonboot: 1\n";

  it("is adopted as it is, kept at the end, and never without permission", async () => {
    const { world, proxmox } = await openProxmox();
    const { state } = proxmox.cluster;
    state.guests["500"] = { node: "pve1", text: guest };
    world.start();
    const spec = {
      disks,
      adopt: "Only",
      externalId: "500",
      machineName: "old",
      powerState: "Stopped",
    } as const;
    await createVm(world.client, "old", spec);
    const isDenied = await until(world, async () => {
      const vm = await getVm(world.client, "old");
      return vm?.status?.failure?.category === "PermissionDenied";
    });
    assert.ok(isDenied, JSON.stringify((await getVm(world.client, "old"))?.status));
    assert.equal(state.guests["500"]?.text, guest);
    const entry = {
      namespace: "*",
      adopt: true,
      externalId: true,
      storages: ["*"],
      networks: ["*"],
    };
    const merge = { spec: { allow: [entry] } };
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    const vm = await ready(world, "old");
    assert.equal(vm.status?.identity, "00000000-0000-4000-8000-00000000f00d");
    assert.equal(vm.status?.deletionPolicy, "Retain");
    const [claim] = await listClaims(world.client);
    assert.equal(claim?.spec.origin, "Adopted");
    assert.match(state.guests["500"]?.text ?? "", /"root":"scsi0"/);
    await remove(world, "old");
    assert.ok(state.guests["500"]);
  });
});
