import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createMemoryDisk } from "../../store/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { builtin, change, create, erase, ids, openWorld, owner, read, widgets } from "./testing.ts";
import type { World } from "./testing.ts";

const namespaces = builtin("namespaces");
const configMaps = builtin("configmaps");
const secrets = builtin("secrets");

async function createNamespace(
  world: World,
  name: string,
  finalizers: string[] = [],
): Promise<void> {
  const fields = { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } };
  await create(
    world,
    namespaces,
    { name, ...(finalizers.length > 0 ? { finalizers } : {}) },
    fields,
  );
}

test("an empty namespace goes, having said that it is empty", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  const seen: KubeObject[] = [];
  world.store.watch({
    bucket: "core/namespaces",
    afterRevision: world.store.revision(),
    deliver: (changes) => {
      for (const { entry } of changes) seen.push(JSON.parse(new TextDecoder().decode(entry.value)));
    },
  });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(ids(world, namespaces), []);
  assert.deepEqual(seen.map(phase), ["Terminating", "Terminating", "Terminating"]);
  assert.equal(
    conditions(seen[1])["NamespaceContentRemaining"],
    "False: All content successfully removed",
  );
  await lifecycle.stop();
});

test("deletes everything in the namespace, kind by kind, and nothing outside", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await createNamespace(world, "team2");
  for (let i = 0; i < 250; i++)
    await create(world, configMaps, { name: `c${i}`, namespace: "team" });
  await create(world, secrets, { name: "s", namespace: "team" });
  await create(world, widgets, { name: "w", namespace: "team" });
  await create(world, widgets, { name: "w2", namespace: "team2" });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(ids(world, namespaces), ["team2"]);
  assert.deepEqual([...ids(world, configMaps), ...ids(world, secrets)], []);
  assert.deepEqual(ids(world, widgets), ["team2/w2"]);
  await lifecycle.stop();
});

test("waits for finalizers, says for which, and goes when the last one is gone", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await create(world, widgets, { name: "w1", namespace: "team", finalizers: ["x/y"] });
  await create(world, widgets, { name: "w2", namespace: "team", finalizers: ["x/y", "z"] });
  await create(world, secrets, { name: "s", namespace: "team", finalizers: ["z"] });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  const said = conditions(read(world, namespaces, "team"));
  assert.equal(
    said["NamespaceContentRemaining"],
    "True: Some resources are remaining: secrets. has 1 resource instances, widgets.berth.dev has 2 resource instances",
  );
  assert.equal(
    said["NamespaceFinalizersRemaining"],
    "True: Some content in the namespace has finalizers remaining: x/y in 2 resource instances, z in 2 resource instances",
  );
  assert.ok(read(world, widgets, "team/w1")?.metadata.deletionTimestamp);

  await change(world, widgets, "team/w1", { finalizers: [] });
  await lifecycle.settled();
  world.clock.advance(1_000);
  await lifecycle.settled();
  const later = conditions(read(world, namespaces, "team"))["NamespaceContentRemaining"];
  assert.match(later ?? "", /widgets.berth.dev has 1 resource instances/);

  await change(world, widgets, "team/w2", { finalizers: [] });
  await change(world, secrets, "team/s", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual(ids(world, namespaces), [], "an empty namespace does not wait for the clock");
  await lifecycle.stop();
  assert.equal(world.clock.timers, 0);
});

test("keeps the time of a condition whose status did not change", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await create(world, widgets, { name: "w1", namespace: "team", finalizers: ["x"] });
  await create(world, widgets, { name: "w2", namespace: "team", finalizers: ["x"] });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  world.clock.advance(60_000);
  await change(world, widgets, "team/w1", { finalizers: [] });
  await lifecycle.settled();
  const status = read(world, namespaces, "team")?.["status"];
  assert.ok(isJsonObject(status) && Array.isArray(status["conditions"]));
  const times = status["conditions"].map((c) => (isJsonObject(c) ? c["lastTransitionTime"] : ""));
  assert.deepEqual([...new Set(times)], ["2026-01-02T03:04:05Z"]);
  await lifecycle.stop();
});

test("finds what was admitted before the namespace was marked and is durable only after", async () => {
  const flushes: (() => void)[] = [];
  const disk = createMemoryDisk({ flush: (complete) => void flushes.push(complete) });
  const flush = async (): Promise<void> => {
    await setImmediate();
    flushes.shift()?.();
    await setImmediate();
  };
  const world = await openWorld({ disk });
  const made = createNamespace(world, "team");
  await flush();
  await made;
  const lifecycle = await world.start();
  const marked = erase(world, namespaces, "team");
  await setImmediate();
  assert.equal(flushes.length, 1, "the mark is on its way to the disk");
  const late = create(world, configMaps, { name: "late", namespace: "team" });
  for (let i = 0; i < 10; i++) await flush();
  world.clock.advance(1_000);
  for (let i = 0; i < 10; i++) await flush();
  await Promise.all([marked, late, lifecycle.settled()]);
  assert.deepEqual(ids(world, configMaps), []);
  assert.deepEqual(ids(world, namespaces), []);
  await lifecycle.stop();
});

test("goes on after a restart where it was", async () => {
  const disk = createMemoryDisk();
  const first = await openWorld({ disk });
  await createNamespace(first, "team");
  await create(first, widgets, { name: "w", namespace: "team", finalizers: ["x"] });
  await erase(first, namespaces, "team");
  disk.crash();
  const world = await openWorld({ disk });
  const lifecycle = await world.start();
  assert.ok(read(world, widgets, "team/w")?.metadata.deletionTimestamp);
  await change(world, widgets, "team/w", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual([...ids(world, widgets), ...ids(world, namespaces)], []);
  await lifecycle.stop();
});

test("empties the namespace although its own finalizers keep it", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team", ["someone/else"]);
  await create(world, configMaps, { name: "c", namespace: "team" });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(ids(world, configMaps), []);
  assert.deepEqual(read(world, namespaces, "team")?.["spec"], { finalizers: [] });
  await change(world, namespaces, "team", { finalizers: [] });
  assert.deepEqual(ids(world, namespaces), []);
  await lifecycle.stop();
});

test("deletes dependents in the namespace in whatever order they are found", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await create(world, widgets, { name: "a", namespace: "team" });
  const blocking = { ownerReferences: [owner(widgets, "a", { blockOwnerDeletion: true })] };
  await create(world, widgets, { name: "b", namespace: "team", ...blocking });
  await erase(world, widgets, "team/a", { propagationPolicy: "Foreground" });
  await erase(world, namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual([...ids(world, widgets), ...ids(world, namespaces)], []);
  await lifecycle.stop();
});

function phase(namespace: KubeObject): unknown {
  const status = namespace["status"];
  return isJsonObject(status) ? status["phase"] : undefined;
}

/** "status: message" by type. */
function conditions(namespace: KubeObject | undefined): Record<string, string> {
  const status = namespace?.["status"];
  const listed =
    isJsonObject(status) && Array.isArray(status["conditions"]) ? status["conditions"] : [];
  return Object.fromEntries(
    listed
      .filter(isJsonObject)
      .map(({ type, status: value, message }) => [
        String(type),
        `${String(value)}: ${String(message)}`,
      ]),
  );
}
