import assert from "node:assert/strict";
import { test } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import type { ProxmoxModel } from "../sim/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until, type World } from "./testing/world.ts";

function guests({ cluster }: ProxmoxModel): string[] {
  return Object.keys(cluster.state.guests);
}

function ownedVolumes({ cluster }: ProxmoxModel): string[] {
  return Object.values(cluster.state.volumes).flatMap((volumes) => {
    return volumes.filter(({ vmid }) => vmid !== undefined).map(({ name }) => name);
  });
}

async function live(world: World, crashAt?: number): Promise<string[]> {
  const { client } = world;
  let current = world.start();
  const first = current;
  if (crashAt !== undefined) first.crashAt = { call: crashAt, when: "after" };
  const revive = (): void => {
    if (current.isCrashed) current = world.start();
  };
  const disks = [
    { name: "root", size: "10Gi", storage: "local-zfs" },
    { name: "data", size: "20Gi", storage: "local-zfs" },
  ];
  await createVm(client, "web", { disks });
  const isThere = await until(world, async () => {
    revive();
    return isReady(await getVm(client, "web"));
  });
  const vm = await getVm(client, "web");
  assert.ok(isThere, JSON.stringify([crashAt, vm?.status, world.log, current.calls], undefined, 1));
  await client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
  const isGone = await until(world, async () => {
    revive();
    return (await getVm(client, "web")) === undefined;
  });
  const left = await getVm(client, "web");
  assert.ok(isGone, JSON.stringify([crashAt, left?.status, world.log], undefined, 1));
  current.crash();
  return first.calls;
}

test("a machine is made on a simulated Proxmox cluster and goes away cleanly", async () => {
  const { world, proxmox } = await openProxmox();
  await live(world);
  assert.deepEqual(guests(proxmox), []);
  assert.deepEqual(ownedVolumes(proxmox), []);
  const writes = world.statusWrites.filter((path) => path.includes("virtualmachines"));
  assert.ok(writes.length <= 15, `${writes.length} status writes, deletion included`);
});

test("a crash after any effect on a simulated Proxmox cluster leaks nothing", async () => {
  const calm = await openProxmox();
  const calls = await live(calm.world);
  const effects = calls.flatMap((name, i) => (name.startsWith("begin") ? [i + 1] : []));
  assert.ok(effects.length >= 6, calls.join());
  for (const call of effects) {
    const { world, proxmox } = await openProxmox();
    await live(world, call);
    assert.deepEqual(guests(proxmox), [], `crash after call ${call}`);
    assert.deepEqual(ownedVolumes(proxmox), [], `crash after call ${call}`);
  }
});
