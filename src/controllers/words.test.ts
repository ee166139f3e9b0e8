import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventResource } from "../api/builtin/index.ts";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import { eventsOf } from "./testing/events.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
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

type Words = Partial<Record<keyof typeof annotations, string | null>>;

async function say({ client }: World, words: Words): Promise<void> {
  const said = Object.entries(words).map(([word, value]) => [
    annotations[word as keyof typeof annotations],
    value,
  ]);
  const merge = { metadata: { annotations: Object.fromEntries(said) } };
  await client.of(virtualMachineKind).patch(web, { merge });
}

async function vmOf({ client }: World): Promise<VirtualMachine> {
  const vm = await getVm(client, "web");
  assert.ok(vm);
  return vm;
}

async function ready(world: World): Promise<VirtualMachine> {
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
  assert.ok(isThere, JSON.stringify([await vmOf(world), world.log], undefined, 1));
  return vmOf(world);
}

function writes({ requests }: SimulatedWorld): string[] {
  return requests.filter(({ method }) => method !== "GET").map(({ path }) => path);
}

describe("berth.dev/paused", () => {
  test("nothing is written to the hypervisor, and what is seen goes on being told", async () => {
    const world = await openWorld();
    const { model } = world;
    world.start();
    await createVm(world.client, "web");
    const { status } = await ready(world);
    await say(world, { paused: "true" });
    const effects = model.effects.length;
    const machine = model.machines.get(status?.externalId ?? "");
    assert.ok(machine);
    machine.power = "Stopped";
    machine.version += 1;
    const isSeen = await until(world, async () => {
      return (await vmOf(world)).status?.powerState === "Stopped";
    });
    assert.ok(isSeen, "a person stopped it, and the status says so");
    assert.equal(condition(await vmOf(world), "Ready"), "False Paused");
    model.isAway = true;
    const isUnknown = await until(world, async () => {
      return condition(await vmOf(world), "Ready") === "Unknown Unreachable";
    });
    assert.ok(isUnknown, "what cannot be seen is not said to be so");
    model.isAway = false;
    await until(world, () => false, 15 * 60_000);
    assert.equal(model.effects.length, effects);
    await say(world, { paused: null });
    await ready(world);
  });
});

describe("berth.dev/cancel", () => {
  test("a long operation is stopped, its end is seen, and nothing begins before the resume", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    proxmox.cluster.timing = { ...proxmox.cluster.timing, copyPerGibMs: 600_000 };
    world.start();
    await createVm(world.client, "web", { disks });
    const isCopying = await until(world, async () => {
      return (await getVm(world.client, "web"))?.status?.operation?.task !== undefined;
    });
    assert.ok(isCopying);
    const { operation } = (await vmOf(world)).status ?? {};
    assert.equal(operation?.step, "AddDisk");
    await say(world, { paused: "true", cancel: operation.id });
    const hasEnded = await until(
      world,
      async () => (await vmOf(world)).status?.operation === undefined,
      60_000,
    );
    assert.ok(hasEnded, JSON.stringify((await vmOf(world)).status));
    const asked = writes(stage).length;
    assert.match(writes(stage).at(-1) ?? "", /\/tasks\/UPID/);
    await until(world, () => false, 300_000);
    assert.equal(writes(stage).length, asked, "paused");
    const { status } = await vmOf(world);
    assert.equal(status?.powerState ?? "Stopped", "Stopped");
    proxmox.cluster.timing = { ...proxmox.cluster.timing, copyPerGibMs: 400 };
    await say(world, { paused: null });
    await ready(world);
  });
});

describe("berth.dev/restart-at", () => {
  test("one restart, once, wherever Berth dies meanwhile", async () => {
    const calm = await openWorld();
    const run = calm.start();
    const from = await restartOnce(calm, () => run.calls.length);
    const calls = run.calls.slice(from);
    // Of looks in a row one is enough: nothing happens between them.
    const last = calls.flatMap((name, i) => (name === calls[i + 1] ? [] : [i + 1]));
    for (const call of last) {
      for (const when of ["before", "after"] as const) {
        const world = await openWorld();
        let current = world.start();
        const revive = (): number => {
          if (current.isCrashed) current = world.start();
          return current.calls.length;
        };
        await restartOnce(world, revive, (begin) => {
          current.crashAt = { call: begin + call, when };
        });
      }
    }
  });

  async function restartOnce(
    world: World,
    revive: () => number,
    crash: (begin: number) => void = () => undefined,
  ): Promise<number> {
    await createVm(world.client, "web", { disks: [], source: { blank: {} } });
    await ready(world);
    await until(world, () => false, 60_000);
    const begin = revive();
    const before = world.model.effects.length;
    crash(begin);
    await say(world, { restartAt: "now" });
    const isHandled = await until(world, async () => {
      revive();
      const vm = await vmOf(world);
      return vm.status?.handledRestartAt === "now" && isReady(vm) && !vm.status.operation;
    });
    assert.ok(isHandled, JSON.stringify((await vmOf(world)).status));
    await until(world, () => revive() < 0, 5_000);
    const kinds = world.model.effects.slice(before).map((effect) => effect.split(" ")[0]);
    assert.deepEqual(kinds, ["powerOff", "powerOn"]);
    return begin;
  }
});

describe("berth.dev/forget", () => {
  test("lets the object go when its hypervisor is gone; the Claim says why, nothing is touched", async () => {
    const world = await openWorld();
    const { model, client } = world;
    world.start();
    await createVm(client, "web");
    const { status } = await ready(world);
    model.isAway = true;
    const effects = model.effects.length;
    await client.of(virtualMachineKind).delete(web);
    await until(world, () => false, 300_000);
    assert.ok(await getVm(client, "web"), "without a word it waits");
    await say(world, { forget: "the house burned down" });
    const isGone = await until(world, async () => (await getVm(client, "web")) === undefined);
    assert.ok(isGone);
    const [claim] = await listClaims(client);
    assert.equal(claim?.spec.state, "Released");
    assert.equal(claim.spec.releaseReason, "forgotten: the house burned down");
    await until(world, () => false, 60_000);
    const events = await client.of(eventResource).list({ namespace: "default" });
    const told = events.items.filter((event) => event["reason"] === "Forgotten");
    assert.match(String(told[0]?.["message"]), /burned down/);
    model.isAway = false;
    await until(world, () => false, 900_000);
    assert.equal(model.effects.length, effects, "it came back, and stands as it stood");
    assert.ok(model.machines.has(status?.externalId ?? ""));
  });

  test("where the hypervisor answers after all, the machine is let go and never destroyed", async () => {
    const world = await openWorld();
    world.start();
    await createVm(world.client, "web");
    await ready(world);
    await say(world, { forget: "moved by hand" });
    await world.client.of(virtualMachineKind).delete(web);
    const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
    assert.ok(isGone);
    assert.equal(world.model.machines.size, 1);
    const [claim] = await listClaims(world.client);
    assert.equal(claim?.spec.releaseReason, "forgotten: moved by hand");
    await until(world, () => false, 60_000);
    const told = (await eventsOf(world.client)).filter(({ reason }) => reason === "Forgotten");
    assert.match(told.map(({ note }) => note).join(), /stays on the hypervisor .*moved by hand$/);
  });
});

describe("a mark that people edited away", () => {
  test("is a conflict with one change to approve; a stale word writes nothing", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start();
    await createVm(world.client, "web", { disks });
    const id = (await ready(world)).status?.externalId ?? "";
    editMarkAway(stage, id);
    await say(world, { reconcileAt: "1" });
    const planned = async (): Promise<string | undefined> => {
      return (await vmOf(world)).status?.plan?.hash;
    };
    assert.ok(await until(world, async () => (await planned()) !== undefined));
    const { failure, plan } = (await vmOf(world)).status ?? {};
    assert.ok(failure && plan);
    assert.equal(failure.category, "IdentityConflict");
    assert.match(String(failure.remedy), /berth adopt --restamp vm\/web -n default/);
    assert.deepEqual(
      plan.changes.map(({ field, effect }) => `${field} ${effect}`),
      ["mark Live"],
    );
    const asked = writes(stage).length;
    await say(world, { approve: "0123456789abcdef" });
    await until(world, () => false, 60_000);
    assert.equal(writes(stage).length, asked, "a stale word approves nothing");
    await say(world, { approve: plan.hash });
    const isBack = await until(world, async () => isMended(await vmOf(world)));
    assert.ok(isBack, JSON.stringify((await vmOf(world)).status));
    assert.match(String(proxmox.cluster.state.guests[id]?.text), /by a person/);
    assert.deepEqual(diskNames(await vmOf(world)), ["root"]);
  });

  function isMended(vm: VirtualMachine): boolean {
    return isReady(vm) && vm.status?.plan === undefined && vm.status?.failure === undefined;
  }

  function diskNames({ status }: VirtualMachine): string[] {
    return (status?.disks ?? []).map(({ name }) => name);
  }

  /** The mark is in the comment that a config file begins with. */
  function editMarkAway({ proxmox }: SimulatedWorld, id: string): void {
    const { guests } = proxmox.cluster.state;
    const guest = guests[id];
    assert.ok(guest);
    const lines = guest.text.split("\n").filter((line) => !line.startsWith("#"));
    assert.ok(lines.length < guest.text.split("\n").length);
    guests[id] = { ...guest, text: `#kept by a person\n${lines.join("\n")}` };
  }
});
