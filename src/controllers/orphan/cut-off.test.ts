import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Orphan } from "../../api/index.ts";
import type { Fence, HypervisorDriver, Operation, TaskView } from "../../hypervisor/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { until } from "../testing/world.ts";
import {
  decide,
  leaveVolume,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  waitForOrphan,
} from "./testing.ts";

const pretended = "pretended";

/** A driver whose first work that is to destroy a machine does nothing, and ends so. */
function ending(view: TaskView): (driver: HypervisorDriver) => HypervisorDriver {
  let isOver = false;
  return (driver) => {
    return new Proxy(driver, {
      get(target, key): unknown {
        const own: unknown = Reflect.get(target, key);
        const bound: unknown = typeof own === "function" ? own.bind(target) : own;
        if (key === "look") {
          return async (task: string) => (task === pretended ? view : target.look(task));
        }
        if (key !== "begin") return bound;
        return async (operation: Operation, fence: Fence) => {
          if (isOver || operation.kind !== "destroy") return target.begin(operation, fence);
          isOver = true;
          return { outcome: "task", task: pretended };
        };
      },
    });
  };
}

/** It goes on by itself to its end, and was at no time called a failure. */
async function demandGone({ world }: SimulatedWorld, id: string): Promise<void> {
  const isGone = await until(world, async () => {
    const now = await orphanOf(world, id);
    assert.equal(now?.status?.failure, undefined);
    return reasonOf(now) === "Gone";
  });
  assert.ok(isGone, JSON.stringify((await orphanOf(world, id))?.status));
}

async function decided(
  view?: TaskView,
): Promise<{ stage: SimulatedWorld; id: string; now: () => Promise<Orphan | undefined> }> {
  const stage = await openProxmox("8.4", view === undefined ? {} : { around: ending(view) });
  const { world } = stage;
  world.start(slow);
  const id = await ready(stage, "web", { powerState: "Stopped" });
  await ready(stage, "b", { powerState: "Stopped" });
  await strip(world, "web");
  await decide(world, await waitForOrphan(world, id), { decision: "Destroy" });
  return { stage, id, now: () => orphanOf(world, id) };
}

describe("work that was to destroy something", () => {
  it("and died is told as such: nobody said that it was done", async () => {
    const { stage, now } = await decided();
    const { world, proxmox } = stage;
    let isKilled = false;
    await until(world, () => {
      const tasks = proxmox.cluster.state.nodes.flatMap((node) => node.tasks);
      const task = tasks.find(({ type, endMs }) => type === "qmdestroy" && endMs === undefined);
      if (task !== undefined) isKilled = proxmox.killWorker(task.upid);
      return isKilled;
    });
    assert.ok(isKilled);
    await until(world, async () => (await now())?.status?.failure !== undefined);
    const { failure } = (await now())?.status ?? {};
    assert.match(failure?.message ?? "", /^Nobody says how the work .* it is still there: \d+\.$/);
    assert.match(failure?.cause ?? "", /^unexpected status/);
  });

  const waited: Readonly<Record<string, { view: TaskView; message: RegExp }>> = {
    "met another's lock waits for it": {
      view: { state: "blocked", waitsFor: "the lock of a backup" },
      message: /^Waits for the lock of a backup\.$/,
    },
    "found the machine not as it was seen looks again": {
      view: { state: "changed", cause: "another digest" },
      message: /^Waits for another look at it/,
    },
  };
  for (const [reason, { view, message }] of Object.entries(waited)) {
    it(`and ${reason}, burns no attempt, and comes to its end`, async () => {
      const { stage, id, now } = await decided(view);
      const waits = async (): Promise<boolean> => {
        return (await now())?.status?.conditions?.some((one) => message.test(one.message)) === true;
      };
      assert.ok(await until(stage.world, waits), JSON.stringify((await now())?.status));
      await demandGone(stage, id);
    });
  }

  it("and was never answered says so, if it is still there", async () => {
    const disk = "local-zfs:vm-200-disk-0";
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    leaveVolume(proxmox, "vm-200-disk-0");
    world.start(slow);
    const orphan = await waitForOrphan(world, disk);
    const isDelete = { matches: ({ method }: { method: string }) => method === "DELETE" };
    proxmox.faults.onRequest({ ...isDelete, kind: "loseRequest" });
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, async () => (await orphanOf(world, disk))?.status?.failure !== undefined);
    const { failure } = (await orphanOf(world, disk))?.status ?? {};
    assert.match(failure?.message ?? "", /^Nobody says how the work/);
    assert.equal(failure?.cause, "no answer came");
  });
});
