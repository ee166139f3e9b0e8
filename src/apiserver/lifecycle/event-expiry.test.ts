import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { formatMicroTime, formatTime } from "../../kernel/clock.ts";
import { createMemoryDisk } from "../../store/index.ts";
import type { Lifecycle } from "./index.ts";
import { builtin, openWorld, type World } from "./testing.ts";

const events = builtin("events");
const minuteMs = 60_000;

async function happen(
  world: World,
  name: string,
  fields: Record<string, unknown> = {},
): Promise<void> {
  await world.create(events, { name }, { reason: "Test", ...fields });
}

/** Lets minutes pass one by one, so that work between them is done. */
async function minutes(world: World, count: number, lifecycle: Lifecycle): Promise<void> {
  for (let i = 0; i < count; i++) {
    world.clock.advance(minuteMs);
    await lifecycle.settled();
  }
}

test("forgets an Event an hour after it happened, and no earlier", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await happen(world, "old");
  await minutes(world, 30, lifecycle);
  await happen(world, "young");
  await minutes(world, 29, lifecycle);
  assert.deepEqual(world.ids(events), ["default/old", "default/young"]);
  await minutes(world, 2, lifecycle);
  assert.deepEqual(world.ids(events), ["default/young"]);
  await minutes(world, 31, lifecycle);
  assert.deepEqual(world.ids(events), []);
  assert.equal(world.clock.timers, 0, "without Events nothing has to be looked for");
  await lifecycle.stop();
});

test("an Event that happens again starts anew", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await happen(world, "e");
  await minutes(world, 50, lifecycle);
  await happen(world, "e", { lastTimestamp: formatTime(world.clock.nowMs()), count: 2 });
  await minutes(world, 50, lifecycle);
  assert.deepEqual(world.ids(events), ["default/e"]);
  await minutes(world, 12, lifecycle);
  assert.deepEqual(world.ids(events), []);
  await lifecycle.stop();
});

test("reads the age from the Event itself, so that a restart does not make it young", async () => {
  const world = await openWorld();
  const nowMs = world.clock.nowMs();
  const old = formatMicroTime(nowMs - 61 * minuteMs);
  const recent = formatMicroTime(nowMs - 10 * minuteMs);
  const creationTimestamp = formatTime(nowMs - 120 * minuteMs);
  await world.create(events, { name: "old", creationTimestamp }, { eventTime: old });
  await world.create(
    events,
    { name: "series", creationTimestamp },
    { series: { lastObservedTime: recent } },
  );
  await world.create(events, { name: "odd", creationTimestamp: null }, { eventTime: "never" });
  const lifecycle = await world.start();
  await minutes(world, 1, lifecycle);
  assert.deepEqual(world.ids(events), ["default/odd", "default/series"]);
  await minutes(world, 60, lifecycle);
  assert.deepEqual(world.ids(events), [], "what has no time is as old as our knowledge of it");
  await lifecycle.stop();
});

test("removes a flood of old Events in bounded sweeps", async () => {
  const world = await openWorld();
  const creationTimestamp = formatTime(world.clock.nowMs() - 90 * minuteMs);
  const names = Array.from({ length: 1_500 }, (_, i) => `e${i}`);
  await Promise.all(names.map((name) => world.create(events, { name, creationTimestamp })));
  const lifecycle = await world.start();
  await minutes(world, 1, lifecycle);
  assert.equal(world.ids(events).length, 500);
  await minutes(world, 1, lifecycle);
  assert.equal(world.ids(events).length, 0);
  await lifecycle.stop();
});

test("keeps an Event that happens again while it is about to be removed", async () => {
  const flushes: (() => void)[] = [];
  const disk = createMemoryDisk({ flush: (complete) => void flushes.push(complete) });
  const flush = async (): Promise<void> => {
    await setImmediate();
    flushes.shift()?.();
    await setImmediate();
  };
  const world = await openWorld({ disk });
  const made = happen(world, "e");
  await flush();
  await made;
  const lifecycle = await world.start();
  world.clock.advance(59 * minuteMs);
  await lifecycle.settled();
  const again = happen(world, "e", { lastTimestamp: formatTime(world.clock.nowMs() + minuteMs) });
  world.clock.advance(minuteMs);
  for (let i = 0; i < 10; i++) await flush();
  await Promise.all([again, lifecycle.settled()]);
  assert.deepEqual(world.ids(events), ["default/e"]);
  await lifecycle.stop();
});
