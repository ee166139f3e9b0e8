import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { Claim, Hypervisor, VirtualMachine } from "../api/index.ts";
import { createVm, isReady, listClaims, openWorld, until, type World } from "./testing/world.ts";

type Quota = Omit<NonNullable<Hypervisor["spec"]["quotas"]>[number], "namespace">;

const asked = 24;

async function openWith(quota: Quota): Promise<World> {
  const world = await openWorld();
  const quotas = [{ namespace: "*", ...quota }];
  await world.client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec: { quotas } } });
  return world;
}

/** All are there when the controllers begin, and none has another's id: nothing parts them. */
async function applyAll(world: World): Promise<void> {
  for (let index = 0; index < asked; index++) {
    await createVm(world.client, `vm-${index}`, { externalId: String(500 + index) });
  }
  world.start({ concurrency: asked });
}

/** One that is Pending only keeps the id that was chosen. */
function isHeld({ spec }: Claim): boolean {
  return spec.state === "Bound" || (spec.state === "Reserved" && spec.preflight !== "Pending");
}

/** Waits until every VM stands or was refused; how many Claims were held at most. */
async function decide(world: World): Promise<{ held: number; vms: VirtualMachine[] }> {
  let held = 0;
  let vms: VirtualMachine[] = [];
  const isDone = await until(world, async () => {
    held = Math.max(held, (await listClaims(world.client)).filter(isHeld).length);
    vms = (await world.client.of(virtualMachineKind).list()).items;
    return vms.every((vm) => isReady(vm) || isRefused(vm));
  });
  assert.ok(isDone, JSON.stringify(vms.map(({ status }) => status?.conditions)));
  return { held, vms };
}

function isRefused({ status }: VirtualMachine): boolean {
  return status?.failure?.category === "QuotaExceeded";
}

describe("quotas", () => {
  const cases: readonly (readonly [string, Quota, number])[] = [
    ["machines", { machines: 5 }, 5],
    ["processors", { cpu: 9 }, 4],
    ["memory", { memory: "6Gi" }, 3],
    ["storage", { storage: "61Gi" }, 2],
  ];
  for (const [what, quota, most] of cases) {
    test(`hold for ${what}, however many machines are applied in the same moment`, async () => {
      const world = await openWith(quota);
      await applyAll(world);
      const { held, vms } = await decide(world);
      assert.equal(held, most);
      assert.equal(vms.filter(isReady).length, most);
      assert.equal(vms.filter(isRefused).length, asked - most);
      assert.equal(world.model.machines.size, most);
    });
  }

  test("give what was freed to exactly as many others", async () => {
    const world = await openWith({ machines: 2 });
    await applyAll(world);
    const { vms } = await decide(world);
    const { namespace = "", name = "" } = vms.find(isReady)?.metadata ?? {};
    await world.client.of(virtualMachineKind).delete({ namespace, name });
    const isGone = await until(world, () => world.model.machines.size < 2);
    assert.ok(isGone);
    const isTaken = await until(world, () => world.model.machines.size === 2, 3_600_000);
    assert.ok(isTaken);
    assert.equal((await decide(world)).held, 2);
  });

  test("are not used up by a machine that is gone again", async () => {
    const world = await openWith({ machines: 1 });
    world.start();
    await createVm(world.client, "first", { externalId: "500" });
    await decide(world);
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "first" });
    await until(world, async () => (await listClaims(world.client)).length === 0);
    await createVm(world.client, "second", { externalId: "500" });
    const { vms } = await decide(world);
    assert.deepEqual(vms.map(isReady), [true]);
  });
});
