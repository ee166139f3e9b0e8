import assert from "node:assert/strict";
import { test } from "node:test";
import { hypervisorKind } from "../api/index.ts";
import { declareOnDead, elsewhereMs, openTwoClusters } from "./testing/dead-cluster.ts";
import { condition, getVm, isReady, until } from "./testing/world.ts";

/** As many as can be asked for by 32 workers before it is noticed that nobody answers. */
const underWayMax = 3 * 32;

const cases = [
  { death: "refuses", count: 200 },
  { death: "hangs", count: 1_000 },
] as const;
for (const { death, count } of cases) {
  test(`${count} machines on a cluster that ${death} cost one elsewhere nothing`, async () => {
    const clusters = await openTwoClusters();
    const { world, callsMs } = clusters;
    await elsewhereMs(clusters, "first");
    const idleMs = await elsewhereMs(clusters, "second");
    clusters.die(death);
    const deadMs = world.clock.monotonicMs();
    await declareOnDead(clusters, count);
    const busyMs = await elsewhereMs(clusters, "web");
    assert.ok(busyMs <= 1.2 * idleMs, `${busyMs} ms beside a dead cluster, ${idleMs} ms without`);

    await until(world, () => false, 15 * 60_000);
    const calls = callsMs.filter((atMs) => atMs >= deadMs).length;
    // One probe after 30 s, 1, 2, 5 and then every 10 min, whatever is declared there.
    assert.ok(calls <= underWayMax + 8, `${calls} calls to a dead cluster`);
    await clusters.run.stop();
  });
}

test("machines on a dead cluster say so once, count no attempt, and go on", async () => {
  const clusters = await openTwoClusters();
  const { world, callsMs } = clusters;
  await until(world, async () => callsMs.length >= 2);
  await declareOnDead(clusters, 60);
  const areReady = async (): Promise<boolean> => {
    for (let index = 0; index < 60; index += 1) {
      if (!isReady(await getVm(world.client, `m${index}`))) return false;
    }
    return true;
  };
  assert.ok(await until(world, areReady));
  clusters.die("hangs");
  await until(world, () => false, 5 * 60_000);
  const told = world.statusWrites.length;
  await until(world, () => false, 60 * 60_000);
  const since = world.statusWrites.slice(told).filter((path) => path.includes("virtualmachines"));
  assert.deepEqual(since, [], "nothing is new of a machine while nobody can look at it");
  const vm = await getVm(world.client, "m7");
  assert.equal(condition(vm, "Ready"), "Unknown Unreachable");
  const { failure, waitingFor } = vm?.status ?? {};
  assert.equal(failure?.category, "NetworkError");
  assert.equal(failure.attempts, 1, "nothing was attempted");
  assert.match(failure.remedy ?? "", /berth why hypervisor\/dead/);
  assert.equal(waitingFor?.name, "Hypervisor dead");

  const before = callsMs.length;
  clusters.revive();
  assert.ok(await until(world, areReady, 15 * 60_000));
  const after = callsMs.slice(before);
  const first = after[0] ?? 0;
  const atOnce = after.filter((atMs) => atMs === first).length;
  assert.ok(atOnce <= 25, `${atOnce} calls in the moment in which it answered`);
  assert.equal((await getVm(world.client, "m7"))?.status?.failure, undefined);
  await clusters.run.stop();
});

test("machines keep their word while the words of an outage change with every look", async () => {
  const clusters = await openTwoClusters();
  const { world } = clusters;
  await declareOnDead(clusters, 20);
  const isThere = async (): Promise<boolean> => isReady(await getVm(world.client, "m19"));
  assert.ok(await until(world, isThere));
  clusters.die("refuses");
  await until(world, () => false, 5 * 60_000);
  const told = world.statusWrites.length;
  const causes = new Set<string | undefined>();
  for (const how of ["hangs", "refuses", "hangs"] as const) {
    clusters.die(how);
    clusters.dead.awayMessage = `It ${how}.`;
    await until(world, () => false, 12 * 60_000);
    const dead = await world.client.of(hypervisorKind).get({ name: "dead" });
    causes.add(dead.status?.failure?.message);
  }
  assert.ok(causes.size > 1, "the Hypervisor itself says what it was last told");
  const since = world.statusWrites.slice(told).filter((path) => path.includes("virtualmachines"));
  assert.deepEqual(since, []);
  clusters.revive();
  assert.ok(await until(world, isThere, 15 * 60_000));
  await clusters.run.stop();
});

test("one lost reply is no outage: one look says that all is well", async () => {
  const clusters = await openTwoClusters();
  const { world, dead } = clusters;
  let isFirst = true;
  dead.fault = ({ kind }) => {
    const isLost = kind === "create" && isFirst;
    if (isLost) isFirst = false;
    return isLost ? "lost before" : "none";
  };
  await declareOnDead(clusters, 1);
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "m0"))));
  assert.equal(isFirst, false);
  await clusters.run.stop();
});
