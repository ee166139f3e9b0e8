import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { condition } from "../testing/world.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

const count = 30;
const names = Array.from({ length: count }, (_, index) => `vm-${index}`);
/** A storage that holds its lock for five seconds per volume, and lets others wait for ten. */
const timing = { allocateMs: 5_000, copyPerGibMs: 1_000 };
const bare: Spec = { networks: [], memory: { size: "512Mi" }, powerState: "Stopped" };

/** Failures of a storage that takes few at a time. Each is named after the thread. */
describe("a storage with a slow lock", () => {
  it(`LINBIT-73: takes ${count} machines at once, and none of them meets the lock's limit`, async () => {
    const stage = await Stage.open("9.2", { timing });
    const disks = [{ ...root, storage: "shared" }];
    await allReady(stage, { ...bare, disks, source: { blank: {} } });
    assert.deepEqual(failedTasks(stage), []);
    assert.equal(stage.volumes.length, count);
    const creations = stage.writes.filter((path) => /^POST \/nodes\/[^/]+\/qemu$/.test(path));
    assert.equal(creations.length, count);
    for (const name of names) await stage.startRemoving(name);
    assert.ok(await stage.until(() => Object.keys(stage.guests).length === 0, 1_800_000));
    assert.deepEqual([failedTasks(stage), stage.volumes], [[], []]);
  });

  it(`LINBIT-73: takes ${count} linked clones of one template at once`, async () => {
    const stage = await Stage.open("9.2", { timing });
    const disks = [{ ...root, storage: "shared" }];
    const template = await stage.make("tpl", { ...bare, disks, source: { blank: {} } });
    const id = idOf(template);
    makeTemplate(stage, id);
    await allReady(stage, {
      ...bare,
      disks,
      source: { clone: { externalId: id, mode: "Linked" } },
    });
    assert.deepEqual(failedTasks(stage), []);
    assert.equal(Object.keys(stage.guests).length, count + 1);
  });
});

async function allReady(stage: Stage, spec: Spec): Promise<void> {
  for (const name of names) await stage.declare(name, spec);
  const left = new Set(names);
  const isDone = await stage.until(async () => {
    const [name = ""] = left;
    const vm = await stage.vm(name);
    assert.equal(vm?.status?.failure, undefined, JSON.stringify(vm?.status?.failure));
    if (condition(vm, "Ready") === "True Succeeded") left.delete(name);
    return left.size === 0;
  }, 3_600_000);
  assert.ok(isDone, [...left].join());
}

function failedTasks({ state }: Stage): string[] {
  const tasks = state.nodes.flatMap((node) => node.tasks);
  return tasks.flatMap(({ type, exitStatus, log }) => {
    return exitStatus === undefined || exitStatus === "OK"
      ? []
      : [`${type} ${exitStatus} ${log.join("; ")}`];
  });
}

function makeTemplate({ simulated, state }: Stage, id: string): void {
  const renamed = (text: string): string => text.replace(`vm-${id}-`, `base-${id}-`);
  for (const volume of Object.values(state.volumes).flat()) volume.name = renamed(volume.name);
  const { node = "", text = "" } = state.guests[id] ?? {};
  simulated.proxmox.writeGuestFile(node, Number(id), `${renamed(text)}template: 1\n`);
}
