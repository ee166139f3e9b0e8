import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const web = { namespace: "default", name: "web" };
const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const never = (): boolean => false;

type Between = NonNullable<Parameters<typeof openProxmox>[1]>["between"];
type Answered = Awaited<ReturnType<NonNullable<Between>>>;

function answer(status: number, reason: string): Answered {
  return { type: "answered", status, reason, body: "", from: "pve1" };
}

async function say(world: World, said: Record<string, string>): Promise<void> {
  const merge = { metadata: { annotations: said } };
  await world.client.of(virtualMachineKind).patch(web, { merge });
}

describe("a word of a person that is longer than a status keeps", () => {
  test("restarts the machine once, and another that begins alike once more", async () => {
    const world = await openWorld();
    world.start();
    await createVm(world.client, "web");
    await until(world, async () => isReady(await getVm(world.client, "web")));
    const before = world.model.effects.length;
    const restarts = (): number => {
      return world.model.effects.slice(before).filter((effect) => effect.startsWith("powerOff"))
        .length;
    };
    await say(world, { [annotations.restartAt]: "x".repeat(130) });
    await until(world, never, 10 * minuteMs);
    assert.equal(restarts(), 1);
    await say(world, { [annotations.restartAt]: `${"x".repeat(130)}y` });
    await until(world, never, 10 * minuteMs);
    assert.equal(restarts(), 2);
  });

  test("is one word: the creation that it asks to try again fails five times, not for ever", async () => {
    let tries = 0;
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        if (request.method !== "POST" || !request.path.endsWith("/config")) return send(request);
        tries += 1;
        return answer(500, "something odd");
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
    await until(world, never, 30 * minuteMs);
    assert.equal(tries, 5);
    await say(world, { [annotations.reconcileAt]: "x".repeat(130) });
    await until(world, never, hourMs);
    assert.equal(tries, 10);
    assert.equal(condition(await getVm(world.client, "web"), "Stalled"), "True CreationFailed");
  });
});

describe("a step that always fails", () => {
  test("is given up after five times, whatever else fails in between", async () => {
    let tries = 0;
    let isLost = false;
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        if (request.method === "POST" && request.path.endsWith("/config")) {
          tries += 1;
          isLost = true;
          return answer(500, "something odd");
        }
        if (!isLost || !request.path.endsWith("/pending")) return send(request);
        isLost = false;
        return answer(595, "No route to host");
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    await until(world, never, 90 * minuteMs);
    const vm = await getVm(world.client, "web");
    assert.equal(tries, 5);
    assert.equal(condition(vm, "Stalled"), "True CreationFailed");
    assert.equal(vm?.status?.failure?.attempts, 5);
  });
});

describe("a step that fails and then does its work", () => {
  test("counts from the beginning for the next disk", async () => {
    const failures = [3, 3];
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        if (request.method !== "POST" || !request.path.endsWith("/config")) return send(request);
        const left = failures[0] ?? 0;
        if (left === 0) failures.shift();
        else failures[0] = left - 1;
        return left === 0 ? send(request) : answer(500, "something odd");
      },
    });
    world.start();
    const data = { name: "data", size: "5Gi", storage: "local-zfs" };
    await createVm(world.client, "web", { disks: [...disks, data] });
    await until(world, async () => isReady(await getVm(world.client, "web")), 30 * minuteMs);
    const vm = await getVm(world.client, "web");
    assert.ok(isReady(vm), JSON.stringify(vm?.status?.failure));
    assert.deepEqual(failures, []);
    assert.equal(vm?.status?.failedSteps, undefined);
  });
});

describe("a step that is refused", () => {
  async function refused(): Promise<{ world: World; tries: number[]; grant: () => void }> {
    let isRefused = true;
    const tries: number[] = [];
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        const isStart = request.method === "POST" && request.path.endsWith("/status/start");
        if (!isStart || !isRefused) return send(request);
        tries.push(world.clock.nowMs());
        return answer(403, "Permission check failed (/vms/100, VM.PowerMgmt)");
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    return { world, tries, grant: () => void (isRefused = false) };
  }

  test("is tried after 10, 20, 40 and then every 60 minutes, whatever changes beside it", async () => {
    const { world, tries } = await refused();
    await until(world, never, 4 * hourMs);
    const waits = tries.slice(1).map((time, index) => (time - (tries[index] ?? 0)) / minuteMs);
    assert.ok(waits.length >= 4, `tried ${tries.length} times`);
    for (const [index, wait] of waits.entries()) {
      const wanted = [10, 20, 40][index] ?? 60;
      assert.ok(Math.abs(wait - wanted) <= wanted * 0.2 + 1, `${wait} for ${wanted}`);
    }
    const { failure } = (await getVm(world.client, "web"))?.status ?? {};
    assert.equal(failure?.attempts, tries.length);
    assert.ok(Date.parse(failure?.nextRetryAt ?? "") > world.clock.nowMs(), "it says when");
    assert.equal(condition(await getVm(world.client, "web"), "Stalled"), "True PermissionDenied");
  });

  test("is found out by itself to be allowed", async () => {
    const { world, tries, grant } = await refused();
    await until(world, () => tries.length === 1);
    grant();
    const wasReady = await until(
      world,
      async () => isReady(await getVm(world.client, "web")),
      13 * minuteMs,
    );
    assert.equal(wasReady, true);
    assert.equal((await getVm(world.client, "web"))?.status?.failedSteps, undefined);
  });

  test("is tried at once when a person asks for it", async () => {
    const { world, tries, grant } = await refused();
    await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
    assert.equal(tries.length, 1);
    grant();
    await say(world, { [annotations.reconcileAt]: "now" });
    assert.equal(
      await until(world, async () => isReady(await getVm(world.client, "web")), minuteMs),
      true,
    );
  });

  test("is tried at once when the declaration is another", async () => {
    const { world, tries } = await refused();
    await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
    await world.client
      .of(virtualMachineKind)
      .patch(web, { merge: { spec: { cpu: { cores: 3 } } } });
    await until(world, () => tries.length === 2, minuteMs);
    assert.equal(tries.length, 2);
    assert.equal((await getVm(world.client, "web"))?.status?.failure?.attempts, 1);
  });
});

describe("a node that can start no worker", () => {
  test("gets few empty machines, and then a person is asked", async () => {
    const { world, proxmox } = await openProxmox("8.4", { nodes: ["pve1"] });
    world.start();
    proxmox.faults.onRequest({
      kind: "noWorker",
      times: 10_000,
      matches: ({ method, path }) => method === "POST" && path.endsWith("/qemu"),
    });
    await createVm(world.client, "web", { disks });
    await until(world, never, 90 * minuteMs);
    const vm = await getVm(world.client, "web");
    assert.equal(Object.keys(proxmox.cluster.state.guests).length, 4);
    assert.equal((await listClaims(world.client)).length, 4);
    assert.equal(condition(vm, "Stalled"), "True LockError");
    assert.match(vm?.status?.failure?.message ?? "", /3 ids were given up like this one before/);
  });
});
