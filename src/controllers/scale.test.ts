import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import { mostAtOnce } from "./testing/at-once.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const nodes = ["pve1", "pve2", "pve3", "pve4", "pve5"];

interface Made {
  readonly vms: readonly VirtualMachine[];
  readonly tookMs: number;
  /** What the cluster answered with an error, in its own words. */
  readonly refusals: readonly string[];
}

/** Applies so many machines at once, and waits until all of them are Ready. */
async function makeAtOnce(stage: SimulatedWorld, count: number, storage: string): Promise<Made> {
  const { world } = stage;
  const refusals = refusalsOf(stage);
  const beginMs = world.clock.monotonicMs();
  for (let index = 0; index < count; index++) {
    await createVm(world.client, `vm-${index}`, {
      disks: [{ name: "root", size: "10Gi", storage }],
      cloudInit: { user: { name: "ada" } },
    });
  }
  let vms: VirtualMachine[] = [];
  let askedMs = 0;
  const isDone = await until(world, async () => {
    if (world.clock.monotonicMs() - askedMs < 500) return false;
    askedMs = world.clock.monotonicMs();
    vms = (await world.client.of(virtualMachineKind).list()).items;
    return vms.every(isReady);
  });
  assert.ok(isDone, JSON.stringify(vms.find((vm) => !isReady(vm))?.status, undefined, 1));
  return { vms, tookMs: world.clock.monotonicMs() - beginMs, refusals };
}

function refusalsOf({ proxmox }: SimulatedWorld): string[] {
  const refusals: string[] = [];
  const send = proxmox.send.bind(proxmox);
  proxmox.send = async (request) => {
    const reply = await send(request);
    if (reply.status >= 400) refusals.push(reply.reason);
    return reply;
  };
  return refusals;
}

interface TaskRecord {
  readonly node: string;
  readonly id: string;
  readonly type: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly exitStatus: string;
}

function tasksOf({ proxmox }: SimulatedWorld): TaskRecord[] {
  return proxmox.cluster.state.nodes.flatMap(({ name, tasks }) => {
    return tasks.map(({ id, type, startMs, endMs = Infinity, exitStatus = "" }) => {
      return { node: name, id, type, startMs, endMs, exitStatus };
    });
  });
}

function copiesByNode(stage: SimulatedWorld): TaskRecord[][] {
  const copies = tasksOf(stage).filter(({ type }) => type === "qmconfig");
  return [...Map.groupBy(copies, ({ node }) => node).values()];
}

/** How many machines were made and stood in line for their copy at most. */
function mostBegun(stage: SimulatedWorld): number {
  const tasks = tasksOf(stage);
  const copies = new Map(
    tasks.filter(({ type }) => type === "qmconfig").map((one) => [one.id, one]),
  );
  const made = tasks.filter(({ type }) => type === "qmcreate");
  return mostAtOnce(
    made.map(({ id, startMs }) => ({ startMs, endMs: copies.get(id)?.startMs ?? Infinity })),
  );
}

describe("sixty machines at once on five nodes", () => {
  it("are all made without a lock that was waited for in vain, at the storages' own rate", async () => {
    const stage = await openProxmox("9.2", { nodes });
    const berth = stage.world.start();
    await until(stage.world, () => false, 30_000);
    const { vms, tookMs, refusals } = await makeAtOnce(stage, 60, "local-zfs");
    // Twice the operations that may go on at once, and one per storage that is just being asked.
    assert.ok(
      mostBegun(stage) <= 2 * 16 + nodes.length,
      `${mostBegun(stage)} had begun and were not copied yet`,
    );
    assert.deepEqual(
      refusals.filter((reason) => /lock|time/i.test(reason)),
      [],
    );
    const failed = tasksOf(stage).filter(({ exitStatus }) => exitStatus !== "OK");
    assert.deepEqual(failed, []);
    const byNode = copiesByNode(stage);
    assert.deepEqual(
      byNode.map((copies) => [copies.length, mostAtOnce(copies)]),
      nodes.map(() => [12, 1]),
    );
    const perNode = nodes.map((node) => vms.filter(({ status }) => status?.node === node).length);
    assert.deepEqual(perNode, [12, 12, 12, 12, 12]);
    const busyMs = byNode.map((copies) => {
      return copies.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
    });
    // The first machine has to be made before anything is copied, the last to be started after it.
    const share = Math.max(...busyMs) / tookMs;
    assert.ok(share >= 0.8, `the busiest storage copied for ${share} of the time`);
    await restsAfterwards(stage, berth.calls);
    berth.crash();
  });

  it("share the slots of a storage that the nodes share", async () => {
    const stage = await openProxmox("9.2", { nodes });
    const { client } = stage.world;
    const merge = { spec: { storages: [{ name: "shared", slots: 2 }] } };
    await client.of(hypervisorKind).patch({ name: "model" }, { merge });
    const berth = stage.world.start();
    await makeAtOnce(stage, 10, "shared");
    assert.equal(mostAtOnce(copiesByNode(stage).flat()), 2);
    berth.crash();
  });
});

describe("a machine that stands in line for a storage", () => {
  it("is not looked at again and again, and still goes at once when it is deleted", async () => {
    const stage = await openProxmox("9.2", { nodes: ["pve1"] });
    const { world, proxmox, requests } = stage;
    const berth = world.start();
    const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
    await createVm(world.client, "first", { disks });
    const isCopying = (): boolean => copiesByNode(stage).length > 0;
    proxmox.cluster.slowStorageMs = 250_000;
    assert.ok(await until(world, isCopying));
    await createVm(world.client, "second", { disks });
    const waits = async (): Promise<boolean> => {
      const vm = await getVm(world.client, "second");
      return JSON.stringify(vm?.status?.conditions).includes("storage local-zfs on pve1");
    };
    assert.ok(await until(world, waits));
    await until(world, () => false, 30_000);
    const id = (await getVm(world.client, "second"))?.status?.externalId ?? "";
    requests.splice(0);
    await until(world, () => false, 180_000);
    const looks = requests.filter(({ path }) => path.includes(`/qemu/${id}/`));
    assert.ok(looks.length <= 1, `${looks.length} looks in three minutes`);
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "second" });
    const isGone = async (): Promise<boolean> => !(await getVm(world.client, "second"));
    assert.ok(await until(world, isGone, 20_000));
    assert.ok(!isReady(await getVm(world.client, "first")), "the first is still being copied");
    berth.crash();
  });
});

describe("a machine whose declaration fails in the moment in which it was made", () => {
  it("is looked for, and not made a second time", async () => {
    const stage = await openProxmox("9.2", { nodes: ["pve1"] });
    const { world, requests } = stage;
    const berth = world.start();
    const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
    await createVm(world.client, "web", { disks });
    const creations = (): number => {
      return requests.filter(({ method, path }) => method === "POST" && path.endsWith("/qemu"))
        .length;
    };
    assert.ok(await until(world, () => creations() > 0));
    const edit = async (classRef: object | null): Promise<void> => {
      const vms = world.client.of(virtualMachineKind);
      await vms.patch({ namespace: "default", name: "web" }, { merge: { spec: { classRef } } });
    };
    await edit({ name: "missing" });
    const isWithoutOperation = async (): Promise<boolean> => {
      const { failure, operation } = (await getVm(world.client, "web"))?.status ?? {};
      return failure !== undefined && operation === undefined;
    };
    assert.ok(await until(world, isWithoutOperation, 20_000));
    await edit(null);
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    assert.equal(creations(), 1);
    berth.crash();
  });
});

/** Ten minutes in which nobody writes, and nothing is asked but what a tick asks. */
async function restsAfterwards(
  { world, requests }: SimulatedWorld,
  calls: string[],
): Promise<void> {
  await until(world, () => false, 60_000);
  requests.splice(0);
  calls.splice(0);
  await until(world, () => false, 600_000);
  assert.deepEqual(
    calls.filter((call) => /^(POST|PUT|PATCH|DELETE|begin) /.test(call)),
    [],
  );
  const ticks = requests.filter(({ path }) => path === "/cluster/resources");
  assert.ok(ticks.length >= 59 && ticks.length <= 61, `${ticks.length} ticks`);
  // Once in ten minutes the system is asked who it is.
  const other = requests.filter(({ path }) => path !== "/cluster/resources");
  assert.ok(other.length <= 8, other.map(({ method, path }) => `${method} ${path}`).join("\n"));
}
