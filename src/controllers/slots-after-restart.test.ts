import assert from "node:assert/strict";
import { it } from "node:test";
import { createClient, type Client } from "../client/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { isStream, type WireStream } from "../kernel/wire.ts";
import { forgetLease } from "./index.ts";
import {
  configure,
  decide,
  disks,
  leaveVolume,
  orphanOf,
  slow,
  waitForOrphan,
} from "./orphan/testing.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until, type World } from "./testing/world.ts";

/** Four VMs with a disk each on one storage, whose copies take minutes. */
async function openCopies(): Promise<{ stage: SimulatedWorld; running: () => number }> {
  const stage = await openProxmox("9.2", { timing: { copyPerGibMs: 100_000 } });
  const root = [{ name: "root", size: "3Gi", storage: "local-zfs" }];
  const placement = { node: "pve1" };
  const spec = { source: { image: { name: "debian" } }, disks: root, placement };
  for (const name of ["a", "b", "c", "d"]) await createVm(stage.world.client, name, spec);
  const running = (): number => {
    const { nodes } = stage.proxmox.cluster.state;
    const tasks = Object.values(nodes).flatMap((node) => node.tasks);
    return tasks.filter((task) => task.type === "qmconfig" && task.endMs === undefined).length;
  };
  return { stage, running };
}

it("a storage gets no third copy because a restarted Berth remembers none of the first two", async () => {
  const { stage, running } = await openCopies();
  const { world } = stage;
  const first = world.start();
  await until(world, () => running() > 0, 60_000);
  await until(world, () => false, 3_000);
  const before = running();
  first.crash();
  world.start();
  let most = 0;
  await until(
    world,
    async () => {
      most = Math.max(most, running());
      const { status } = (await getVm(world.client, "d")) ?? {};
      return status?.disks !== undefined;
    },
    40_000,
  );
  assert.ok(before >= 1);
  assert.equal(most, before);
});

/** A client that hears the news of each watch late. */
function withLateWatches({ transport, clock }: World, lagMs: number): Client {
  const late = (stream: WireStream): WireStream => ({
    start: (sink) => {
      return stream.start({
        write: (chunk) => void clock.after(lagMs, () => sink.write(chunk)),
        end: () => void clock.after(lagMs, () => sink.end()),
        bufferedBytes: () => sink.bufferedBytes(),
      });
    },
  });
  return createClient({
    clock,
    transport: async (request, signal) => {
      const response = await transport(request, signal);
      return isStream(response.body) ? { ...response, body: late(response.body) } : response;
    },
  });
}

it("a storage gets no second copy because watches do not tell yet of the first", async () => {
  const { stage, running } = await openCopies();
  const { world } = stage;
  world.start({ client: withLateWatches(world, 3_000), forgets: () => true });
  let most = 0;
  await until(
    world,
    () => {
      most = Math.max(most, running());
      return false;
    },
    30_000,
  );
  assert.equal(most, 1);
});

/** A client that hears nothing of Orphans until it is let through. */
function withoutOrphans({ transport, clock }: World): { client: Client; letThrough: () => void } {
  const held = Promise.withResolvers<void>();
  const client = createClient({
    clock,
    transport: async (request, signal) => {
      const isHeld = request.method === "GET" && request.url.includes("/orphans");
      if (isHeld) await held.promise;
      return transport(request, signal);
    },
  });
  return { client, letThrough: held.resolve };
}

function isDestruction({ method, path }: PveRequest): boolean {
  return method === "DELETE" && path.includes("vm-200-disk-0");
}

function isCreation({ method, path }: PveRequest): boolean {
  return method === "POST" && path.endsWith("/qemu");
}

it("a VM gets no slot of an Orphan's open operation, though Orphans are listed last", async () => {
  const disk = "local-zfs:vm-200-disk-0";
  const { world, proxmox, requests } = await openProxmox("8.4", {
    // The request is under way for as long as nobody knows: it stays open for its whole window.
    between: async (request, send) => {
      return isDestruction(request) ? { type: "lost", detail: "no reply" } : send(request);
    },
  });
  leaveVolume(proxmox, "vm-200-disk-0");
  const orphans = { graceSeconds: 60, sweepSeconds: 60 };
  await configure(world, { orphans, slots: { hypervisor: 1 } });
  const first = world.start(slow);
  await decide(world, await waitForOrphan(world, disk), { decision: "Destroy" });
  assert.ok(await until(world, () => requests.some(isDestruction)));
  first.crash();
  await forgetLease(world.client);
  await createVm(world.client, "web", { disks, source: { blank: {} } });
  const { client, letThrough } = withoutOrphans(world);
  world.start({ ...slow, client });
  await until(world, () => false, 35_000);
  assert.equal(requests.filter(isCreation).length, 0, "the only slot is the Orphan's");
  const { status } = (await getVm(world.client, "web")) ?? {};
  assert.match(status?.waitingFor?.name ?? "", /open operations/);
  letThrough();
  await until(world, () => false, 5_000);
  const { operation } = (await orphanOf(world, disk))?.status ?? {};
  assert.ok(operation !== undefined && operation.outcome === undefined, "it is still open");
  assert.equal(requests.filter(isCreation).length, 0, "the only slot is still the Orphan's");
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
});

it("a VM that waits until Orphans are listed begins as soon as they are", async () => {
  const { world, requests } = await openProxmox("8.4");
  await createVm(world.client, "web", { disks, source: { blank: {} } });
  const { client, letThrough } = withoutOrphans(world);
  world.start({ client, whenAbsent: "trust" });
  await until(world, () => false, 10_000);
  assert.equal(requests.filter(isCreation).length, 0);
  letThrough();
  assert.ok(await until(world, () => requests.some(isCreation), 1_000));
});
