import assert from "node:assert/strict";
import { virtualMachineKind } from "../src/api/index.ts";
import { openProxmox, type SimulatedWorld } from "../src/controllers/testing/simulated-proxmox.ts";
import { createVm, isReady, until } from "../src/controllers/testing/world.ts";
import { show } from "./support.ts";
import {
  addWire,
  countCalls,
  makeRoom,
  type RunOptions,
  showCalls,
  showCluster,
  tasksOf,
} from "./thousand-figures.ts";

/** How often it is asked whether all are Ready: reading a thousand objects takes its time. */
const askMs = 500;
/** The guests' agents have answered, and the last tick has shown everything. */
const settleMs = 60_000;

export async function measureVirtual({ nodes, machines, restMs }: RunOptions): Promise<void> {
  const stage = await openProxmox("9.2", { nodes });
  const { world, proxmox } = stage;
  makeRoom(proxmox);
  addWire(proxmox, world.clock);
  const calls = countCalls(proxmox);
  const berth = world.start();
  await until(world, () => false, 30_000);
  calls();
  const cpu = process.cpuUsage();
  const beginMs = world.clock.monotonicMs();
  for (let index = 0; index < machines; index++) {
    await createVm(world.client, `vm-${index}`, {
      disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
      cloudInit: { user: { name: "ada" } },
    });
  }
  assert.ok(await allReady(stage), "not all machines are Ready");
  const tookMs = world.clock.monotonicMs() - beginMs;
  const { user, system } = process.cpuUsage(cpu);
  const name = `virtual, ${machines} machines`;
  showCluster(name, tasksOf(proxmox), tookMs);
  showCalls(`${name}: calls`, calls(), machines);
  show(`${name}: API`, {
    "status writes per machine": world.statusWrites.length / machines,
    "CPU s of Berth, API and cluster": (user + system) / 1e6,
  });
  await until(world, () => false, settleMs);
  calls();
  berth.calls.splice(0);
  await until(world, () => false, restMs);
  const wrote = berth.calls.filter((call) => /^(POST|PUT|PATCH|DELETE|begin) /.test(call));
  showCalls(`${name}: ${restMs / 1000} s of rest`, calls(), machines);
  show("", { "writes to the API but Leases": String(wrote.length) });
  berth.crash();
}

/** Whether all came to be Ready within two hours. */
async function allReady({ world }: SimulatedWorld): Promise<boolean> {
  let askedMs = 0;
  return await until(
    world,
    async () => {
      if (world.clock.monotonicMs() - askedMs < askMs) return false;
      askedMs = world.clock.monotonicMs();
      return (await world.client.of(virtualMachineKind).list()).items.every(isReady);
    },
    7_200_000,
  );
}
