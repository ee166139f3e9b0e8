import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createMemoryDisk } from "../../store/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { builtin, openWorld, owner, widgets, type World } from "./testing.ts";

const namespaces = builtin("namespaces");
const configMaps = builtin("configmaps");
const secrets = builtin("secrets");

async function createNamespace(
  world: World,
  name: string,
  finalizers: string[] = [],
): Promise<void> {
  const fields = { spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } };
  await world.create(
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
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(world.ids(namespaces), []);
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
    await world.create(configMaps, { name: `c${i}`, namespace: "team" });
  await world.create(secrets, { name: "s", namespace: "team" });
  await world.create(widgets, { name: "w", namespace: "team" });
  await world.create(widgets, { name: "w2", namespace: "team2" });
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(world.ids(namespaces), ["team2"]);
  assert.deepEqual([...world.ids(configMaps), ...world.ids(secrets)], []);
  assert.deepEqual(world.ids(widgets), ["team2/w2"]);
  await lifecycle.stop();
});

test("waits for finalizers, says for which, and goes when the last one is gone", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await world.create(widgets, { name: "w1", namespace: "team", finalizers: ["x/y"] });
  await world.create(widgets, { name: "w2", namespace: "team", finalizers: ["x/y", "z"] });
  await world.create(secrets, { name: "s", namespace: "team", finalizers: ["z"] });
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  const said = conditions(world.read(namespaces, "team"));
  assert.equal(
    said["NamespaceContentRemaining"],
    "True: Some resources are remaining: secrets. has 1 resource instances, widgets.berth.dev has 2 resource instances",
  );
  assert.equal(
    said["NamespaceFinalizersRemaining"],
    "True: Some content in the namespace has finalizers remaining: x/y in 2 resource instances, z in 2 resource instances",
  );
  assert.ok(world.read(widgets, "team/w1")?.metadata.deletionTimestamp);

  await world.change(widgets, "team/w1", { finalizers: [] });
  await lifecycle.settled();
  world.clock.advance(1_000);
  await lifecycle.settled();
  const later = conditions(world.read(namespaces, "team"))["NamespaceContentRemaining"];
  assert.match(later ?? "", /widgets.berth.dev has 1 resource instances/);

  await world.change(widgets, "team/w2", { finalizers: [] });
  await world.change(secrets, "team/s", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual(world.ids(namespaces), [], "an empty namespace does not wait for the clock");
  await lifecycle.stop();
  assert.equal(world.clock.timers, 0);
});

test("keeps the time of a condition whose status did not change", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await world.create(widgets, { name: "w1", namespace: "team", finalizers: ["x"] });
  await world.create(widgets, { name: "w2", namespace: "team", finalizers: ["x"] });
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  world.clock.advance(60_000);
  await world.change(widgets, "team/w1", { finalizers: [] });
  await lifecycle.settled();
  const status = world.read(namespaces, "team")?.["status"];
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
  const marked = world.erase(namespaces, "team");
  await setImmediate();
  assert.equal(flushes.length, 1, "the mark is on its way to the disk");
  const late = world.create(configMaps, { name: "late", namespace: "team" });
  for (let i = 0; i < 10; i++) await flush();
  world.clock.advance(1_000);
  for (let i = 0; i < 10; i++) await flush();
  await Promise.all([marked, late, lifecycle.settled()]);
  assert.deepEqual(world.ids(configMaps), []);
  assert.deepEqual(world.ids(namespaces), []);
  await lifecycle.stop();
});

test("goes on after a restart where it was", async () => {
  const disk = createMemoryDisk();
  const first = await openWorld({ disk });
  await createNamespace(first, "team");
  await first.create(widgets, { name: "w", namespace: "team", finalizers: ["x"] });
  await first.erase(namespaces, "team");
  disk.crash();
  const world = await openWorld({ disk });
  const lifecycle = await world.start();
  assert.ok(world.read(widgets, "team/w")?.metadata.deletionTimestamp);
  await world.change(widgets, "team/w", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual([...world.ids(widgets), ...world.ids(namespaces)], []);
  await lifecycle.stop();
});

test("empties the namespace although its own finalizers keep it", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team", ["someone/else"]);
  await world.create(configMaps, { name: "c", namespace: "team" });
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual(world.ids(configMaps), []);
  assert.deepEqual(world.read(namespaces, "team")?.["spec"], { finalizers: [] });
  await world.change(namespaces, "team", { finalizers: [] });
  assert.deepEqual(world.ids(namespaces), []);
  await lifecycle.stop();
});

test("deletes dependents in the namespace in whatever order they are found", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await createNamespace(world, "team");
  await world.create(widgets, { name: "a", namespace: "team" });
  const blocking = { ownerReferences: [owner(widgets, "a", { blockOwnerDeletion: true })] };
  await world.create(widgets, { name: "b", namespace: "team", ...blocking });
  await world.erase(widgets, "team/a", { propagationPolicy: "Foreground" });
  await world.erase(namespaces, "team");
  await lifecycle.settled();
  assert.deepEqual([...world.ids(widgets), ...world.ids(namespaces)], []);
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
      .map((condition) => [
        text(condition["type"]),
        `${text(condition["status"])}: ${text(condition["message"])}`,
      ]),
  );
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
