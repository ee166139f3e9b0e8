import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { configMapResource, eventResource } from "../api/builtin/index.ts";
import { annotations, hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { Hypervisor } from "../api/index.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { OperationRecord } from "./operations/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  openWorld,
  until,
  type Incarnation,
  type World,
} from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const names = ["web", "db"];
const minuteMs = 60_000;
/** spec.limits.pollSeconds, and what a lease and a late answer may take. */
const tickMs = 10_000;
/** The epoch of another run of the same installation. */
const othersPool = "berth-epoch-00000000-0000-4000-8000-000000000007-9";

interface Lives {
  readonly stage: SimulatedWorld;
  readonly original: World;
  readonly first: Incarnation;
  readonly restored: World;
}

/**
 * Two VMs run; a backup is made; both are stopped by an edit. Then the backup is started beside the
 * original: it declares that they run.
 */
async function restoreBeside(): Promise<Lives> {
  const stage = await openProxmox();
  const { world: original } = stage;
  const first = original.start();
  for (const name of names) await createVm(original.client, name, { disks });
  await areReady(original);
  const restored = await original.copy();
  for (const name of names) await declarePower(original, name, "Stopped");
  await areReady(original);
  return { stage, original, first, restored };
}

async function declarePower(
  { client }: World,
  name: string,
  powerState: "Running" | "Stopped",
): Promise<void> {
  const merge = { spec: { powerState, shutdown: { timeoutSeconds: 5 } } };
  await client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge });
}

async function areReady(world: World): Promise<void> {
  const isSo = await until(world, async () => {
    const vms = await Promise.all(names.map((name) => getVm(world.client, name)));
    return vms.every((vm) => isReady(vm));
  });
  assert.ok(isSo, world.log.join("\n"));
}

async function takeOver(world: World): Promise<void> {
  const { client } = world;
  const { status } = await hypervisorOf(world);
  const token = `2026-11-16T12:00:00Z ${status?.observedBy}`;
  const merge = { metadata: { annotations: { [annotations.takeoverAt]: token } } };
  await client.of(hypervisorKind).patch({ name: "model" }, { merge });
}

function powerSteps({ requests }: SimulatedWorld): string[] {
  const steps = requests.filter(({ method, path }) => method === "POST" && /\/status\//.test(path));
  return steps.map(({ path }) => path.replace(/^.*\/status\//, ""));
}

/** What a run of Berth sent that changes anything. */
function writesOf({ calls }: Incarnation): string[] {
  return calls.filter((call) => call.startsWith("begin ") || call === "advance");
}

interface Decided {
  readonly stage: SimulatedWorld;
  /** Nothing whose path begins so is answered any more. */
  readonly hold: (path: string) => void;
  /** Lets the shutdown go on. */
  readonly send: () => void;
}

/** A VM is to be shut down: that is decided and written down, and not sent yet. */
async function decideShutdown(): Promise<Decided> {
  const gate = Promise.withResolvers<void>();
  let held: string | undefined;
  const stage = await openProxmox("8.4", {
    between: (request, send) => {
      const isHeld = held !== undefined && request.path.startsWith(held);
      return isHeld ? new Promise<never>(() => undefined) : send(request);
    },
    around: (driver) => ({
      ...driver,
      begin: async (operation, fence) => {
        if (operation.kind === "powerOff") await gate.promise;
        return driver.begin(operation, fence);
      },
    }),
  });
  const { world } = stage;
  world.start();
  await createVm(world.client, "web", { disks });
  await until(world, async () => isReady(await getVm(world.client, "web")));
  await declarePower(world, "web", "Stopped");
  const isDecided = await until(world, async () => {
    return (await getVm(world.client, "web"))?.status?.operation?.step === "Shutdown";
  });
  assert.ok(isDecided);
  return { stage, hold: (path) => (held = path), send: () => gate.resolve() };
}

function shutdownsOf({ proxmox }: SimulatedWorld): string[] {
  const tasks = proxmox.cluster.state.nodes.flatMap((node) => node.tasks);
  return tasks.map(({ upid }) => upid).filter((upid) => /qmshutdown|qmstop/.test(upid));
}

async function hypervisorOf({ client }: World): Promise<Hypervisor> {
  return client.of(hypervisorKind).get({ name: "model" });
}

async function readyOf(world: World): Promise<string> {
  const { status } = await hypervisorOf(world);
  const found = status?.conditions?.find(({ type }) => type === "Ready");
  return `${found?.status} ${found?.reason}`;
}

async function pass(world: World, ms: number): Promise<void> {
  await until(world, () => false, ms);
}

async function eventReasons({ client }: World): Promise<string[]> {
  const { items } = await client.of(eventResource).list();
  return items.map(({ reason }) => String(reason));
}

async function recordOf({ client }: World): Promise<{ [key: string]: unknown }> {
  const at = { namespace: "berth-system", name: "installation" };
  const { data } = await client.of(configMapResource).get(at);
  const text = isJsonObject(data) ? data["epochs"] : undefined;
  const records: unknown = JSON.parse(typeof text === "string" ? text : "{}");
  assert.ok(isJsonObject(records));
  const [record] = Object.values(records);
  assert.ok(isJsonObject(record));
  return record;
}

describe("a backup that was restored and started beside the original", () => {
  it("lets exactly one of the two act, and the other says that it does not", async () => {
    const { stage, original, first, restored } = await restoreBeside();
    const before = powerSteps(stage).length;
    const second = restored.start();
    await until(restored, async () => (await readyOf(restored)) === "True Connected");
    await pass(restored, tickMs);
    const sent = writesOf(first).length;
    await pass(restored, minuteMs);
    assert.deepEqual(powerSteps(stage).slice(before), ["start", "start"]);
    assert.equal(writesOf(first).length, sent, "the original writes after one tick");
    assert.ok(writesOf(second).includes("begin powerOn"));
    assert.equal(await readyOf(original), "False Superseded");
    assert.equal(await readyOf(restored), "True Connected");
  });

  it("says on the Hypervisor and its VMs who acts instead, and what to do", async () => {
    const { original, restored } = await restoreBeside();
    restored.start();
    await until(original, async () => (await readyOf(original)) === "False Superseded");
    await areReady(restored);
    await pass(original, tickMs);
    const { failure, otherRun } = (await hypervisorOf(original)).status ?? {};
    assert.match(`${failure?.remedy}`, /berth takeover model/);
    assert.deepEqual([failure?.category, otherRun?.epoch], ["ConflictingController", 2]);
    assert.ok((await eventReasons(original)).includes("Superseded"));
    assert.ok(original.log.some((line) => /is not ready.*Superseded/.test(line)));
    const vm = await getVm(original.client, "web");
    assert.equal(condition(vm, "Ready"), "False DependencyNotReady");
    assert.match(`${vm?.status?.failure?.message}`, /another run of this installation acts/);
    const seen = vm?.status?.powerState;
    assert.equal(seen, "Running", "what is seen is still told");
  });

  it("sends nothing while it finds out who wrote a newer epoch", async () => {
    const never = new Promise<never>(() => undefined);
    let isHeld = false;
    const stage = await openProxmox("8.4", {
      between: (request, send) => {
        return isHeld && request.path.startsWith("/pools") ? never : send(request);
      },
    });
    const { world } = stage;
    world.start();
    await createVm(world.client, "web", { disks });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    isHeld = true;
    await pass(world, tickMs);
    const said = world.statusWrites.length;
    await declarePower(world, "web", "Stopped");
    await pass(world, minuteMs);
    assert.deepEqual(shutdownsOf(stage), []);
    assert.equal(world.statusWrites.length, said, "nor does a VM try it again and again");
  });

  it("holds VMs back while a session is replaced and the new one is not answered", async () => {
    const never = new Promise<never>(() => undefined);
    let isHeld = false;
    const stage = await openProxmox("8.4", {
      between: (request, send) => {
        return isHeld && !request.path.includes("/qemu/") ? never : send(request);
      },
    });
    const { world } = stage;
    world.start();
    await createVm(world.client, "web", { disks });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    isHeld = true;
    const merge = { spec: { limits: { pollSeconds: 5 } } };
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    await pass(world, 1_000);
    const said = world.statusWrites.length;
    await declarePower(world, "web", "Stopped");
    await pass(world, minuteMs);
    assert.equal(world.statusWrites.length, said);
  });

  it("sends nothing that it decided before, while it finds out who wrote a newer epoch", async () => {
    const { stage, hold, send } = await decideShutdown();
    hold("/pools");
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    await pass(stage.world, tickMs);
    send();
    await pass(stage.world, minuteMs);
    assert.deepEqual(shutdownsOf(stage), []);
  });

  it("sends nothing over an old connection when the new one shows a newer epoch", async () => {
    const { stage, send } = await decideShutdown();
    const { world } = stage;
    const merge = { spec: { limits: { pollSeconds: 5 } } };
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    await pass(world, tickMs);
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    await until(world, async () => (await readyOf(world)) === "False Superseded");
    send();
    await pass(world, minuteMs);
    assert.deepEqual(shutdownsOf(stage), []);
    assert.equal(await readyOf(world), "False Superseded");
  });

  it("says why nothing is done, and begins nothing, also where it remembers nothing", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start({ forgets: () => true });
    await createVm(world.client, "web", { disks });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    await until(world, async () => (await readyOf(world)) === "False Superseded");
    await declarePower(world, "web", "Stopped");
    await pass(world, minuteMs);
    const vm = await getVm(world.client, "web");
    assert.equal(vm?.status?.operation, undefined);
    assert.match(`${vm?.status?.failure?.message}`, /another run of this installation acts/);
  });

  it("changes roles when a person lets the original take over", async () => {
    const { stage, original, restored } = await restoreBeside();
    const second = restored.start();
    await until(original, async () => (await readyOf(original)) === "False Superseded");
    await areReady(restored);
    await takeOver(original);
    await until(original, async () => (await readyOf(restored)) === "False Superseded");
    const before = powerSteps(stage).length;
    const sent = writesOf(second).length;
    await areReady(original);
    await pass(original, 2 * minuteMs);
    assert.equal(await readyOf(original), "True Connected");
    assert.equal(writesOf(second).length, sent);
    assert.ok(powerSteps(stage).slice(before).length <= 2);
    assert.equal((await getVm(original.client, "web"))?.status?.powerState, "Stopped");
    assert.ok((await eventReasons(original)).includes("TakenOver"));
  });

  it("does not act because a person asks for another try, or resumes a VM", async () => {
    const { original, first, restored } = await restoreBeside();
    restored.start();
    await until(original, async () => (await readyOf(original)) === "False Superseded");
    await areReady(restored);
    const sent = writesOf(first).length;
    const { client } = original;
    const set = (value: string | null): object => ({
      metadata: {
        annotations: { [annotations.reconcileAt]: "2026-11-16", [annotations.paused]: value },
      },
    });
    const vm = { namespace: "default", name: "web" };
    for (const value of ["true", null]) {
      await client.of(virtualMachineKind).patch(vm, { merge: set(value) });
      await client.of(hypervisorKind).patch({ name: "model" }, { merge: set(value) });
      await pass(original, minuteMs);
    }
    assert.equal(await readyOf(original), "False Superseded");
    assert.equal(writesOf(first).length, sent);
  });

  it("does not take over because a backup has the annotation that asked the original", async () => {
    const { original, restored } = await restoreBeside();
    restored.start();
    await until(original, async () => (await readyOf(original)) === "False Superseded");
    await takeOver(original);
    const later = await original.copy();
    await until(original, async () => (await readyOf(original)) === "True Connected");
    const third = later.start();
    await pass(later, minuteMs);
    assert.equal(await readyOf(later), "False Superseded");
    assert.equal(await readyOf(original), "True Connected");
    assert.deepEqual(writesOf(third), []);
    await takeOver(later);
    await until(later, async () => (await readyOf(later)) === "True Connected");
    assert.equal(await readyOf(later), "True Connected");
  });

  it("settles by looking alone what the original began under its epoch", async () => {
    const original = await openWorld();
    const first = original.start();
    await createVm(original.client, "web");
    const operationIn = async ({ client }: World): Promise<OperationRecord | undefined> => {
      return (await getVm(client, "web"))?.status?.operation;
    };
    await until(original, async () => (await operationIn(original)) !== undefined);
    const begun = await operationIn(original);
    assert.equal(begun?.epoch, "1");
    const restored = await original.copy();
    first.crash();
    const second = restored.start();
    await until(restored, async () => (await operationIn(restored))?.id !== begun?.id);
    assert.ok(second.calls.includes("advance"), "it acts");
    assert.ok(
      !second.calls.some((call) => call.startsWith("begin create")),
      second.calls.join(", "),
    );
    assert.ok(await until(restored, async () => isReady(await getVm(restored.client, "web"))));
    assert.equal(original.model.machines.size, 1);
    const creates = [...first.calls, ...second.calls].filter((call) => call === "begin create");
    assert.equal(creates.length, 1);
  });

  it("only observes in another place, until a person lets it take over", async () => {
    const original = await openWorld();
    original.start({ place: { id: "machine-a/inode-1", name: "server" } });
    for (const name of names) await createVm(original.client, name);
    await areReady(original);
    const restored = await original.copy();
    await declarePower(restored, "web", "Stopped");
    const elsewhere = restored.start({ place: { id: "machine-b/inode-2", name: "laptop" } });
    await pass(restored, minuteMs);
    assert.equal(await readyOf(restored), "False PlaceChanged");
    assert.equal(await readyOf(original), "True Connected");
    assert.deepEqual(writesOf(elsewhere), []);
    assert.ok((await eventReasons(restored)).includes("PlaceChanged"));
    await takeOver(restored);
    await areReady(restored);
    await pass(restored, tickMs);
    assert.equal(await readyOf(restored), "True Connected");
    assert.equal(await readyOf(original), "False Superseded");
    assert.equal((await hypervisorOf(original)).status?.otherRun?.place, "laptop");
    assert.equal((await recordOf(restored))["place"], "machine-b/inode-2");
  });
});

/** Somebody deletes all epochs by hand, and a minute passes. */
async function deleteEpochs({ stage, original }: Lives): Promise<void> {
  stage.proxmox.cluster.state.pools = [];
  await pass(original, minuteMs);
}

function epochPools({ proxmox }: SimulatedWorld): string[] {
  return proxmox.cluster.state.pools.map(({ poolid }) => poolid.replace(/^.*-/, ""));
}

/** The restored copy acts, and the original has said that it only observes. */
async function superseded(): Promise<Lives & { readonly second: Incarnation }> {
  const lives = await restoreBeside();
  const second = lives.restored.start();
  await until(lives.original, async () => (await readyOf(lives.original)) === "False Superseded");
  await areReady(lives.restored);
  return { ...lives, second };
}

describe("an installation that was superseded", () => {
  it("does not act again because somebody deletes the epoch", async () => {
    const lives = await superseded();
    const { original, first, second, stage, restored } = lives;
    await second.stop();
    const sent = writesOf(first).length;
    await deleteEpochs(lives);
    assert.equal(await readyOf(original), "False Superseded");
    assert.deepEqual(epochPools(stage), []);
    assert.equal(writesOf(first).length, sent);
    const { failure, otherRun } = (await hypervisorOf(original)).status ?? {};
    assert.equal(otherRun?.epoch, 2);
    assert.match(`${failure?.message}`, /epoch 2.* Its epoch is no longer there/);
    // The copy was never superseded: it writes the epoch again, and acts.
    restored.start();
    await pass(original, minuteMs);
    assert.deepEqual(
      [await readyOf(original), await readyOf(restored)],
      ["False Superseded", "True Connected"],
    );
    assert.equal(writesOf(first).length, sent);
  });

  it("does not act again because it is restarted or its status is lost", async () => {
    const lives = await superseded();
    const { original, first, second, stage } = lives;
    await second.stop();
    first.crash();
    await deleteEpochs(lives);
    const hypervisors = original.client.of(hypervisorKind);
    const { status: _lost, ...bare } = await hypervisorOf(original);
    await hypervisors.updateStatus(bare);
    const again = original.start();
    await pass(original, minuteMs);
    assert.equal(await readyOf(original), "False Superseded");
    assert.deepEqual([writesOf(again), epochPools(stage)], [[], []]);
  });

  it("does not act from a backup that was made of it", async () => {
    const lives = await superseded();
    const { original, first, second, stage } = lives;
    const backup = await original.copy();
    await second.stop();
    first.crash();
    await deleteEpochs(lives);
    const third = backup.start();
    await pass(backup, minuteMs);
    assert.equal(await readyOf(backup), "False Superseded");
    assert.deepEqual([writesOf(third), epochPools(stage)], [[], []]);
  });

  it("stays so where it is told that the copy is stopped, until it is told to take over", async () => {
    const lives = await superseded();
    const { original, second, stage, restored } = lives;
    await second.stop();
    await deleteEpochs(lives);
    await takeOver(original);
    assert.ok(await until(original, async () => (await readyOf(original)) === "True Connected"));
    assert.deepEqual(epochPools(stage), ["3"]);
    await areReady(original);
    // Now the copy is superseded, and the original writes a missing epoch again.
    restored.start();
    await until(original, async () => (await readyOf(restored)) === "False Superseded");
    await deleteEpochs(lives);
    assert.deepEqual(epochPools(stage), ["3"]);
    assert.deepEqual(
      [await readyOf(original), await readyOf(restored)],
      ["True Connected", "False Superseded"],
    );
  });

  it("lets nobody act where two superseded each other and a third that did is gone", async () => {
    const lives = await superseded();
    const { original, first, second, restored, stage } = lives;
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    await until(restored, async () => (await readyOf(restored)) === "False Superseded");
    const sent = [writesOf(first).length, writesOf(second).length];
    await deleteEpochs(lives);
    assert.deepEqual(
      [await readyOf(original), await readyOf(restored)],
      ["False Superseded", "False Superseded"],
    );
    assert.deepEqual([writesOf(first).length, writesOf(second).length], sent);
    assert.deepEqual(epochPools(stage), []);
    await takeOver(restored);
    await until(restored, async () => (await readyOf(restored)) === "True Connected");
    assert.deepEqual(epochPools(stage), ["10"]);
  });

  it("does not act where the newer epoch was listed and deleted before it was read", async () => {
    let isDeleted = false;
    const stage = await openProxmox("8.4", {
      between: (request, send) => {
        if (isDeleted && request.path === "/pools") stage.proxmox.cluster.state.pools = [];
        return send(request);
      },
    });
    const { world } = stage;
    const run = world.start();
    await until(world, async () => (await readyOf(world)) === "True Connected");
    const sent = writesOf(run).length;
    await stage.byHand({ method: "POST", path: "/pools", params: { poolid: othersPool } });
    isDeleted = true;
    await pass(world, minuteMs);
    assert.equal(await readyOf(world), "False Superseded");
    assert.equal(writesOf(run).length, sent);
  });

  it("does not act where another run was faster, and its epoch was deleted at once", async () => {
    const stage = await openProxmox("8.4", {
      around: (driver) => ({
        ...driver,
        advance: async (change, fence) => {
          const pools = { method: "POST", path: "/pools", params: { poolid: othersPool } } as const;
          await stage.byHand(pools);
          const advanced = await driver.advance(change, fence);
          stage.proxmox.cluster.state.pools = [];
          return advanced;
        },
      }),
    });
    const { world } = stage;
    const run = world.start();
    await pass(world, minuteMs);
    assert.equal(await readyOf(world), "False Superseded");
    assert.deepEqual(writesOf(run), ["advance"]);
  });

  it("only observes in another place also when it can no longer tell where it is", async () => {
    const original = await openWorld();
    original.start({ place: { id: "machine-a/inode-1", name: "server" } });
    await until(original, async () => (await readyOf(original)) === "True Connected");
    const restored = await original.copy();
    const elsewhere = restored.start({ place: { id: "machine-b/inode-2", name: "laptop" } });
    await until(restored, async () => (await readyOf(restored)) === "False PlaceChanged");
    elsewhere.crash();
    const again = restored.start();
    await pass(restored, minuteMs);
    assert.equal(await readyOf(restored), "False PlaceChanged");
    assert.deepEqual(writesOf(again), []);
  });
});

describe("one life of an installation", () => {
  it("goes on after kill -9 and a restart without any person", async () => {
    const world = await openWorld();
    const first = world.start();
    for (const name of names) await createVm(world.client, name);
    await areReady(world);
    first.crash();
    const second = world.start();
    await declarePower(world, "web", "Stopped");
    await areReady(world);
    assert.equal(await readyOf(world), "True Connected");
    assert.ok(writesOf(second).includes("begin powerOff"));
    assert.equal((await recordOf(world))["number"], 2);
  });

  it("goes on when another replica takes the lead", async () => {
    const world = await openWorld();
    const first = world.start({ identity: "a" });
    const second = world.start({ identity: "b" });
    for (const name of names) await createVm(world.client, name);
    await areReady(world);
    await first.stop();
    await declarePower(world, "web", "Stopped");
    await areReady(world);
    assert.ok(writesOf(second).includes("begin powerOff"));
    assert.equal(await readyOf(world), "True Connected");
    assert.equal(world.model.epochs.size, 1);
  });

  it("is killed at any call around its epoch, and the next one acts", async () => {
    for (const call of ["epoch", "PUT /api/v1/namespaces/berth-system/configmaps", "advance"]) {
      for (const when of ["before", "after"] as const) {
        const rehearsal = await openWorld();
        const probe = rehearsal.start();
        await until(rehearsal, () => probe.calls.includes("advance"));
        const at = probe.calls.findIndex((name) => name.startsWith(call)) + 1;
        const world = await openWorld();
        const dying = world.start();
        dying.crashAt = { call: at, when };
        await until(world, () => dying.isCrashed, minuteMs);
        assert.ok(dying.calls.at(-1)?.startsWith(call), `died at ${dying.calls.at(-1)}`);
        world.start();
        await createVm(world.client, "web");
        const isUp = await until(world, async () => isReady(await getVm(world.client, "web")));
        assert.ok(isUp, `${call} ${when}: ${world.log.join("\n")}`);
      }
    }
  });

  it("writes its epoch once, and nothing more while nothing changes", async () => {
    const world = await openWorld();
    const run = world.start();
    await createVm(world.client, "web");
    await until(world, async () => isReady(await getVm(world.client, "web")));
    await pass(world, 30 * minuteMs);
    assert.equal(run.calls.filter((call) => call === "advance").length, 1);
    assert.equal(run.calls.filter((call) => call === "epoch").length, 1);
  });

  it("acts once a hypervisor answers that was away at the start", async () => {
    const world = await openWorld();
    world.model.isAway = true;
    world.start();
    await createVm(world.client, "web");
    await pass(world, minuteMs);
    assert.equal(world.model.epochs.size, 0);
    world.model.isAway = false;
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    assert.equal((await recordOf(world))["number"], 1);
  });

  it("settles a lost reply to its epoch by looking", async () => {
    for (const fault of ["lost after", "lost before"] as const) {
      const world = await openWorld();
      let times = 0;
      world.model.epochFault = () => (++times <= 2 ? fault : "none");
      world.start();
      await createVm(world.client, "web");
      assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))), fault);
      assert.equal([...world.model.epochs.values()][0]?.number, 1);
    }
  });

  it("puts a missing epoch back, reports it and goes on", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    const run = world.start();
    await createVm(world.client, "web", { disks });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    proxmox.cluster.state.pools = [];
    await pass(world, tickMs);
    assert.equal(await readyOf(world), "True Connected");
    const pools = proxmox.cluster.state.pools.map(({ poolid }) => poolid);
    assert.deepEqual(pools, ["berth-epoch-00000000-0000-4000-8000-000000000007-1"]);
    assert.ok((await eventReasons(world)).includes("EpochMissing"));
    assert.equal(run.calls.filter((call) => call === "advance").length, 2);
  });

  it("writes nothing where it may not write its epoch, and says which right it lacks", async () => {
    const world = await openWorld();
    world.model.epochFault = () => "refused";
    world.start();
    await createVm(world.client, "web");
    await pass(world, minuteMs);
    assert.deepEqual(world.model.effects, []);
    assert.equal(await readyOf(world), "False PermissionDenied");
    const vm = await getVm(world.client, "web");
    assert.match(vm?.status?.failure?.message ?? "", /could not be written: The model refuses/);
    world.model.epochFault = () => "none";
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  });
});
