import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { builtinResources } from "../../api/builtin/index.ts";
import { createCatalogue } from "../catalogue.ts";
import { builtin, ghosts, openWorld, owner, widgets, zones, type World } from "./testing.ts";

const configMaps = builtin("configmaps");
const ownedBy = (...names: string[]) => ({
  ownerReferences: names.map((name) => owner(widgets, name, { blockOwnerDeletion: true })),
});

test("deletes dependents in the background when their owner is gone, and theirs after them", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  await world.create(configMaps, { name: "c", ...ownedBy("b") });
  await world.create(configMaps, { name: "stranger" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/a", "default/b"]);
  await world.erase(widgets, "default/a");
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  assert.deepEqual(world.ids(configMaps), ["default/stranger"]);
  await lifecycle.stop();
});

test("collects what lost its owner while nothing was running", async () => {
  const world = await openWorld();
  await world.create(widgets, { name: "b", ...ownedBy("gone") });
  await world.create(widgets, { name: "kept" });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), ["default/kept"]);
  await lifecycle.stop();
});

test("collects a dependent that is created after its owner went", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "b", ...ownedBy("gone") });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("an owner of the same name but another uid is not the owner", async () => {
  const world = await openWorld();
  await world.create(widgets, { name: "a", uid: "new" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), ["default/a"]);
  await lifecycle.stop();
});

test("only marks a dependent that has finalizers, and its own dependents wait for it", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a"), finalizers: ["x/y"] });
  await world.create(widgets, { name: "c", ...ownedBy("b") });
  await world.erase(widgets, "default/a");
  await lifecycle.settled();
  const marked = world.read(widgets, "default/b");
  assert.equal(marked?.metadata.deletionTimestamp, "2026-01-02T03:04:05Z");
  assert.equal(marked?.metadata.generation, 2);
  assert.deepEqual(world.ids(widgets), ["default/b", "default/c"]);
  await world.change(widgets, "default/b", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("in the foreground the owner goes last, and waits for finalizers down the tree", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  await world.create(widgets, { name: "c", ...ownedBy("b"), finalizers: ["x/y"] });
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/a", "default/b", "default/c"]);
  const middle = world.read(widgets, "default/b")?.metadata;
  assert.deepEqual(middle?.finalizers, ["foregroundDeletion"], "it has dependents of its own");
  await world.change(widgets, "default/c", { finalizers: [] });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("in the foreground the owner does not wait for those that do not block it", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  const loose = { ownerReferences: [owner(widgets, "a")], finalizers: ["x/y"] };
  await world.create(widgets, { name: "b", ...loose });
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/b"]);
  assert.ok(world.read(widgets, "default/b")?.metadata.deletionTimestamp);
  await lifecycle.stop();
});

test("in the foreground a dependent with another owner is kept, and let go by this one", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "other" });
  await world.create(widgets, { name: "b", ...ownedBy("a", "other") });
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/b", "default/other"]);
  assert.deepEqual(world.read(widgets, "default/b")?.metadata.ownerReferences, [
    owner(widgets, "other", { blockOwnerDeletion: true }),
  ]);
  await lifecycle.stop();
});

test("an owner in the foreground goes on when somebody takes the reference away", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a"), finalizers: ["x/y"] });
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.ok(world.read(widgets, "default/a"));
  await world.change(widgets, "default/b", { ownerReferences: [] });
  await lifecycle.settled();
  assert.equal(world.read(widgets, "default/a"), undefined);
  await lifecycle.stop();
});

test("orphans dependents: the references go, then the owner, and nothing else", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  await world.create(widgets, { name: "c", ...ownedBy("b") });
  await world.erase(widgets, "default/a", { propagationPolicy: "Orphan" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/b", "default/c"]);
  assert.equal(world.read(widgets, "default/b")?.metadata.ownerReferences, undefined);
  assert.equal(world.read(widgets, "default/b")?.metadata.generation, 1);
  assert.ok(world.read(widgets, "default/c")?.metadata.ownerReferences);
  await lifecycle.stop();
});

test("orphans before anything else decides: a dependent whose other owner is gone then goes", async () => {
  const world = await openWorld();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a", "gone") });
  await world.erase(widgets, "default/a", { propagationPolicy: "Orphan" });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("an owner of a kind that is not served says nothing: the object stays", async () => {
  const world = await openWorld();
  const lost = { ownerReferences: [owner(ghosts, "g"), owner(widgets, "gone")] };
  await world.create(widgets, { name: "b", ...lost });
  const other = { ownerReferences: [owner(widgets, "w", { apiVersion: "berth.dev/v9" })] };
  await world.create(widgets, { name: "c", ...other });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), ["default/b", "default/c"]);
  await lifecycle.stop();
});

test("looks again when the catalogue has grown", async () => {
  const small = createCatalogue([...builtinResources, widgets, zones]);
  const large = createCatalogue([...builtinResources, widgets, zones, ghosts]);
  let now = { ...small };
  const catalogue = {
    all: () => now.all(),
    find: (...args: Parameters<typeof small.find>) => small.find(...args),
    findKind: (...args: Parameters<typeof small.findKind>) => now.findKind(...args),
    generation: () => now.generation(),
  };
  const world = await openWorld({ catalogue });
  await world.create(widgets, { name: "b", ownerReferences: [owner(ghosts, "g")] });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), ["default/b"]);
  now = { ...large, generation: () => 2 };
  await world.create(configMaps, { name: "anything" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), [], "the owner's kind is known now, and it is not there");
  await lifecycle.stop();
});

test("an owner in another namespace is no owner", async () => {
  const world = await openWorld();
  await world.create(widgets, { name: "a", namespace: "elsewhere" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  const lifecycle = await world.start();
  assert.deepEqual(world.ids(widgets), ["elsewhere/a"]);
  await lifecycle.stop();
});

test("a cluster-wide object may not be owned from a namespace, and is left alone", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(zones, { name: "z", ...ownedBy("a") });
  await lifecycle.settled();
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), [], "it does not wait for what is not its own");
  assert.deepEqual(world.ids(zones), ["z"]);
  await lifecycle.stop();
});

test("a cluster-wide owner reaches into every namespace", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  const ofZone = { ownerReferences: [owner(zones, "z", { blockOwnerDeletion: true })] };
  await world.create(zones, { name: "z" });
  await world.create(widgets, { name: "a", namespace: "x", uid: "ax", ...ofZone });
  await world.create(widgets, { name: "a", namespace: "y", uid: "ay", ...ofZone });
  await world.erase(zones, "z", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual([...world.ids(zones), ...world.ids(widgets)], []);
  await lifecycle.stop();
});

test("an object that owns itself can be deleted in the foreground", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a", ...ownedBy("a") });
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("a circle of owners that are all deleted in the foreground does not wait for ever", async () => {
  const world = await openWorld();
  const names = ["a", "b", "c", "d"];
  for (const [i, name] of names.entries()) {
    await world.create(widgets, { name, ...ownedBy(names[(i + 1) % names.length] ?? "") });
  }
  const lifecycle = await world.start();
  assert.equal(world.ids(widgets).length, 4, "a circle without a deletion stays");
  for (const name of names) {
    await world.erase(widgets, `default/${name}`, { propagationPolicy: "Foreground" });
  }
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("deletes more dependents than are looked at together", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  const names = Array.from({ length: 500 }, (_, i) => `b${i}`);
  await Promise.all(names.map((name) => world.create(widgets, { name, ...ownedBy("a") })));
  await world.erase(widgets, "default/a", { propagationPolicy: "Foreground" });
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("tries again when the disk is full, and says so nowhere but in its log", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  await lifecycle.settled();
  await world.erase(widgets, "default/a");
  world.disk.setFault("full");
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/b"]);
  world.disk.setFault(undefined);
  world.clock.advance(1_000);
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), []);
  await lifecycle.stop();
});

test("leaves no timer and does nothing after it was stopped", async () => {
  const world = await openWorld();
  const lifecycle = await world.start();
  await world.create(widgets, { name: "a" });
  await world.create(widgets, { name: "b", ...ownedBy("a") });
  await lifecycle.stop();
  await world.erase(widgets, "default/a");
  await lifecycle.settled();
  assert.deepEqual(world.ids(widgets), ["default/b"]);
  assert.equal(world.clock.timers, 0);
});

test("ends in the same state whether it ran all the time or crashed anywhere between", async () => {
  const names = ["a", "b", "c", "d", "e"];
  const act = fc.record({
    name: fc.constantFrom(...names),
    policy: fc.constantFrom<"Foreground" | "Background">("Foreground", "Background"),
    restarts: fc.boolean(),
  });
  const owners = fc.array(fc.constantFrom(...names), { maxLength: 2 });
  const shape = fc.tuple(...names.map(() => owners));
  await fc.assert(
    fc.asyncProperty(shape, fc.array(act, { minLength: 1, maxLength: 4 }), async (tree, acts) => {
      const steady = await run(tree, acts, false);
      const broken = await run(tree, acts, true);
      assert.deepEqual(broken, steady);
    }),
    { numRuns: 60 },
  );

  async function run(
    tree: readonly string[][],
    acts: readonly { name: string; policy: "Foreground" | "Background"; restarts: boolean }[],
    crashes: boolean,
  ): Promise<string[]> {
    let world: World = await openWorld();
    for (const [i, name] of names.entries()) {
      await world.create(widgets, { name, ...ownedBy(...new Set(tree[i])) });
    }
    let lifecycle = await world.start();
    for (const { name, policy, restarts } of acts) {
      if (!world.read(widgets, `default/${name}`)) continue;
      await world.erase(widgets, `default/${name}`, { propagationPolicy: policy });
      if (crashes && restarts) {
        // What was under way never ends; a new process finds what was durable.
        world.disk.crash({ tear: 0.5 });
        world = await openWorld({ disk: world.disk });
        lifecycle = await world.start();
      }
      await lifecycle.settled();
    }
    await lifecycle.stop();
    return world.ids(widgets);
  }
});
