import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];

async function ready({ world }: SimulatedWorld, name: string): Promise<VirtualMachine> {
  const isThere = await until(world, async () => {
    const vm = await getVm(world.client, name);
    return isReady(vm) && condition(vm, "Synced") === "True Succeeded";
  });
  const vm = await getVm(world.client, name);
  assert.ok(vm && isThere, JSON.stringify([vm?.status, world.log], undefined, 1));
  return vm;
}

/** A machine that keeps away from its like. */
async function createApart({ world }: SimulatedWorld, name: string): Promise<void> {
  await world.client.of(virtualMachineKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { namespace: "default", name, labels: { app: "db" } },
    spec: {
      hypervisorRef: { name: "model" },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      source: { blank: {} },
      disks,
      placement: { awayFrom: [{ matchLabels: { app: "db" } }] },
    },
  });
}

async function made(
  stage: SimulatedWorld,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec>,
): Promise<VirtualMachine> {
  await createVm(stage.world.client, name, { disks, ...spec });
  return ready(stage, name);
}

async function edit(stage: SimulatedWorld, name: string, spec: object): Promise<void> {
  const at = { namespace: "default", name };
  await stage.world.client.of(virtualMachineKind).patch(at, { merge: { spec } });
}

async function remove({ world }: SimulatedWorld, name: string): Promise<void> {
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name });
  const isGone = await until(world, async () => (await getVm(world.client, name)) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, name))?.status));
}

/** Somebody makes a template of a machine on pve2: its disk becomes a base. */
function makeTemplate(proxmox: SimulatedWorld["proxmox"], id: string): void {
  const { state } = proxmox.cluster;
  const renamed = (text: string): string => text.replace(`vm-${id}-berth`, `base-${id}-berth`);
  for (const volume of Object.values(state.volumes).flat()) volume.name = renamed(volume.name);
  const text = renamed(state.guests[id]?.text ?? "");
  proxmox.writeGuestFile("pve2", Number(id), `${text}template: 1\n`);
}

describe("a copy of a machine that is declared beside it", () => {
  it("waits until the original stands, and begins at once when it does", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    await createVm(world.client, "web", { source: { clone: { vmRef: { name: "tpl" } } }, disks });
    await until(world, async () => (await getVm(world.client, "web"))?.status !== undefined);
    await made(stage, "tpl", { powerState: "Stopped", source: { blank: {} } });
    const sinceMs = world.clock.nowMs();
    await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(world.clock.nowMs() - sinceMs < 20_000, `${world.clock.nowMs() - sinceMs} ms`);
    await remove(stage, "tpl");
    await until(world, () => false, 120_000);
    assert.ok(isReady(await getVm(world.client, "web")));
  });
});

describe("a machine from a file that only one node has", () => {
  it("is made on that node, though another has more room", async () => {
    const stage = await openProxmox();
    const { volumes } = stage.proxmox.cluster.state;
    for (const [place, files] of Object.entries(volumes)) {
      if (!place.startsWith("pve3"))
        volumes[place] = files.filter((one) => one.content !== "import");
    }
    stage.world.start();
    const vm = await made(stage, "web", {});
    assert.equal(vm.status?.node, "pve3");
  });
});

describe("a linked clone on a simulated Proxmox", () => {
  it("is made where its template is, gets its mark and its form, and goes cleanly", async () => {
    const stage = await openProxmox();
    const { proxmox } = stage;
    const { state } = proxmox.cluster;
    stage.world.start();
    const source = await made(stage, "tpl", {
      powerState: "Stopped",
      placement: { node: "pve2" },
      source: { blank: {} },
    });
    const id = source.status?.externalId ?? "";
    makeTemplate(proxmox, id);
    const vm = await made(stage, "web", {
      source: { clone: { externalId: id, mode: "Linked" } },
      disks: [{ name: "root", size: "12Gi", storage: "local-zfs" }],
      cpu: { cores: 3 },
    });
    assert.equal(vm.status?.node, "pve2");
    const copy = state.guests[vm.status?.externalId ?? ""]?.text ?? "";
    assert.match(copy, /^cores: 3$/m);
    assert.match(copy, /"root":"scsi0"/);
    assert.match(copy, /size=12G/);
    await remove(stage, "web");
    assert.deepEqual(Object.keys(state.guests), [id]);
  });
});

describe("a linked clone that is cut short", () => {
  it("leaves nothing behind if Berth is killed after any effect and the object goes", async () => {
    for (const call of ["begin clone", "begin stamp", "begin configure", "begin powerOn"]) {
      const stage = await openProxmox();
      const { world, proxmox } = stage;
      const { state } = proxmox.cluster;
      let berth = world.start();
      const source = await made(stage, "tpl", {
        powerState: "Stopped",
        placement: { node: "pve2" },
        source: { blank: {} },
      });
      const id = source.status?.externalId ?? "";
      makeTemplate(proxmox, id);
      await createVm(world.client, "web", {
        disks,
        source: { clone: { externalId: id, mode: "Linked" } },
      });
      const before = berth.calls.length;
      await until(world, () => berth.calls.slice(before).includes(call));
      berth.crash();
      berth = world.start();
      await remove(stage, "web");
      assert.deepEqual(Object.keys(state.guests), [id], call);
      berth.crash();
    }
  });
});

describe("a disk that is already on a simulated Proxmox", () => {
  it("is taken as it is, belongs to the machine then, and goes with it", async () => {
    const stage = await openProxmox();
    const { state } = stage.proxmox.cluster;
    const there = {
      name: "vm-777-disk-0",
      content: "images",
      format: "raw",
      sizeBytes: 4 * 1024 ** 3,
      usedBytes: 0,
      createdMs: 0,
      vmid: 777,
    } as const;
    state.volumes["pve1:rpool/data"] = [{ ...there }];
    stage.world.start();
    const vm = await made(stage, "web", {
      placement: { node: "pve1" },
      source: { importedDisk: { diskId: "local-zfs:vm-777-disk-0", mode: "Take" } },
      disks: [{ name: "root", size: "4Gi", storage: "local-zfs" }],
    });
    assert.equal(vm.status?.disks?.[0]?.volume, "local-zfs:vm-777-disk-0");
    const [claim] = await listClaims(stage.world.client);
    assert.equal(claim?.spec.volumes?.[0]?.id, "local-zfs:vm-777-disk-0");
    await remove(stage, "web");
    assert.deepEqual(state.volumes["pve1:rpool/data"], []);
  });
});

describe("the place of a machine on a simulated Proxmox", () => {
  it("is left as it is unless it is enforced", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const vm = await made(stage, "web", { placement: { node: "pve1" } });
    assert.equal(vm.status?.node, "pve1");
    await edit(stage, "web", { placement: { node: "pve2" } });
    await until(stage.world, () => false, 60_000);
    assert.equal((await getVm(stage.world.client, "web"))?.status?.node, "pve1");
    await edit(stage, "web", { placement: { mode: "Enforce" } });
    const isMoved = await until(stage.world, async () => {
      return (await getVm(stage.world.client, "web"))?.status?.node === "pve2";
    });
    assert.ok(isMoved, JSON.stringify((await getVm(stage.world.client, "web"))?.status));
    await ready(stage, "web");
  });

  it("moves a VM back that somebody moved, as soon as that is seen", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const shared = [{ name: "root", size: "10Gi", storage: "shared" }];
    const placement = { node: "pve2", mode: "Enforce" } as const;
    const vm = await made(stage, "web", { placement, disks: shared });
    await until(stage.world, () => false, 60_000);
    const path = `/nodes/pve2/qemu/${vm.status?.externalId}/migrate`;
    const moving = stage.asRoot({ method: "POST", path, params: { target: "pve1", online: 1 } });
    await until(stage.world, () => false, 120_000);
    await moving;
    const guests = Object.values(stage.proxmox.cluster.state.guests);
    assert.deepEqual(
      guests.map(({ node }) => node),
      ["pve2"],
    );
    assert.equal((await getVm(stage.world.client, "web"))?.status?.node, "pve2");
  });

  it("brings no right to volumes that stood there before, under its id", async () => {
    const stage = await openProxmox("9.2");
    stage.world.start();
    await made(stage, "web", { externalId: "500", placement: { node: "pve1", mode: "Enforce" } });
    const { volumes } = stage.proxmox.cluster.state;
    const theirs = { name: "vm-500-disk-7", content: "images", format: "raw", vmid: 500 } as const;
    const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
    volumes["pve2:rpool/data"] = [...(volumes["pve2:rpool/data"] ?? []), { ...theirs, ...sizes }];
    await edit(stage, "web", { placement: { node: "pve2" } });
    assert.equal((await ready(stage, "web")).status?.node, "pve2");
    await remove(stage, "web");
    const left = volumes["pve2:rpool/data"].map(({ name }) => name);
    assert.deepEqual(left, ["vm-500-disk-7"]);
  });

  it("keeps away from where the others are", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const nodes = new Set<string | undefined>();
    for (const name of ["a", "b", "c"]) {
      await createApart(stage, name);
      nodes.add((await ready(stage, name)).status?.node);
    }
    assert.equal(nodes.size, 3);
  });

  it("keeps machines apart that are applied in the same moment", async () => {
    const stage = await openProxmox("8.4");
    stage.world.start();
    // Each of them would rather have this one.
    Object.assign(stage.proxmox.cluster.node("pve2"), { cpus: 256, memoryBytes: 1024 ** 4 });
    const nodes = new Set<string | undefined>();
    // They all wait for the hypervisor to be connected, and then look for a node at once.
    for (const name of ["a", "b", "c"]) await createApart(stage, name);
    for (const name of ["a", "b", "c"]) nodes.add((await ready(stage, name)).status?.node);
    assert.equal(nodes.size, 3);
  });
});

describe("high availability on a simulated Proxmox", () => {
  it("is declared, keeps the power that is asked for, and is given up again", async () => {
    const stage = await openProxmox("8.4");
    stage.world.start();
    const vm = await made(stage, "web", { highAvailability: { enabled: true, maxRestarts: 2 } });
    assert.equal(vm.status?.powerState, "Running");
    const calls = stage.requests.filter(({ method, path }) => {
      return method !== "GET" && path.includes("/ha/resources");
    });
    assert.equal(calls.length, 1);
    await edit(stage, "web", { powerState: "Stopped" });
    assert.equal((await ready(stage, "web")).status?.powerState, "Stopped");
    await edit(stage, "web", { highAvailability: { enabled: false, maxRestarts: null } });
    await ready(stage, "web");
    await remove(stage, "web");
    assert.deepEqual(
      (await listClaims(stage.world.client)).map(({ spec }) => spec.state),
      ["Quarantined"],
    );
  });
});
