import assert from "node:assert/strict";
import { it } from "node:test";
import {
  guests,
  keeper,
  ready,
  remove,
  spec,
  stand,
  volumes,
} from "../src/controllers/testing/keeping.ts";
import { openProxmox, type SimulatedWorld } from "../src/controllers/testing/simulated-proxmox.ts";
import { createVm, type Incarnation } from "../src/controllers/testing/world.ts";

/** Deletion and return, with an incarnation of their own, which may crash. */
async function outAndBack(stage: SimulatedWorld, crashAt?: Incarnation["crashAt"]) {
  const { world } = stage;
  const before = world.start();
  await stand(stage);
  before.crash();
  let current = world.start();
  const whole = current;
  if (crashAt !== undefined) current.crashAt = crashAt;
  const revive = (): void => {
    if (current.isCrashed) current = world.start();
    checkKeepers(stage);
  };
  await remove(stage, revive);
  assert.equal(volumes(stage).length, 1);
  await keeper(stage);
  await createVm(world.client, "web", spec);
  const id = await ready(stage, revive);
  assert.match(guests(stage).get(id)?.["scsi1"] ?? "", /size=2G/);
  assert.equal(volumes(stage).length, 2);
  current.crash();
  return whole;
}

/** Never more than the machine and its keeper, and never less than the data. */
function checkKeepers(stage: SimulatedWorld): void {
  const ours = [...guests(stage).keys()].filter((id) => Number(id) >= 1_000_000);
  assert.ok(ours.length <= 2, ours.join());
  assert.ok(volumes(stage).length >= 1);
}

/** Between two effects, and between an effect and what is written down of it. */
const isWorth = {
  before: (name: string) => name.startsWith("begin "),
  after: (name: string) => name.startsWith("begin ") || /^(?:PUT|POST) .*\/claims/.test(name),
} as const;

for (const when of ["before", "after"] as const) {
  it(`a crash ${when} any effect loses no disk and makes no second keeper`, async () => {
    const { calls } = await outAndBack(await openProxmox());
    for (const [i, name] of calls.entries()) {
      if (!isWorth[when](name)) continue;
      try {
        await outAndBack(await openProxmox(), { call: i + 1, when });
      } catch (error) {
        throw new Error(`crash ${when} call ${i + 1} (${name})`, { cause: error });
      }
    }
  });
}
