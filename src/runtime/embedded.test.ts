import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { builtinResources, configMapResource, namespaceResource } from "../api/builtin/index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createDiscovery,
  createOpenApi,
  createResourceHandler,
  createRoleAuthorizer,
  createSchemaRunners,
  type ApiServer,
} from "../apiserver/index.ts";
import { createClient, createInformer, inProcess, type Client } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createMemoryDisk, openStore, type Store } from "../store/index.ts";
import { startController } from "./controller.ts";
import { eventKind } from "./event-object.ts";
import { createEventRecorder } from "./event-recorder.ts";
import { addFinalizer, removeFinalizer } from "./finalizers.ts";
import { startLeaderLease } from "./leader-lease.ts";
import { leaseKind } from "./lease-object.ts";
import { again, settled } from "./outcome.ts";
import { ownObjects } from "./source.ts";
import { flush, pass, seededRandom } from "./testing.ts";

/** All of the room over the real client against the real server, on the memory store. */

const clock = new VirtualClock();
const random = seededRandom(3);
let store: Store;
let server: ApiServer;
let client: Client;

before(async () => {
  store = await openStore({ journal: createMemoryDisk().open(), clock });
  const catalogue = createCatalogue(builtinResources);
  const environment = { store, catalogue, clock, random, runnerOf: createSchemaRunners() };
  server = createApiServer({
    ...environment,
    resources: createResourceHandler(environment),
    discovery: createDiscovery(catalogue),
    openApi: createOpenApi(catalogue),
    authenticators: [],
    authorizer: createRoleAuthorizer(),
    health: () => [],
    version: "0.1.0",
    log: () => undefined,
  });
  const transport = inProcess((request) => server.handleAs(controllersUser, request));
  client = createClient({ transport, clock });
  for (const name of ["berth-system", "prod"]) {
    await client.of(namespaceResource).create(configMap({ name }));
  }
});

after(async () => {
  server.close();
  await store.close();
});

function configMap(metadata: KubeObject["metadata"]): KubeObject {
  return { apiVersion: "v1", kind: metadata.namespace ? "ConfigMap" : "Namespace", metadata };
}

test("a lease goes from one contender to the next", async () => {
  const open = (): ReturnType<typeof startLeaderLease> => {
    return startLeaderLease({
      client,
      clock,
      random,
      namespace: "berth-system",
      name: "controllers",
      identity: "node",
      graceMs: 1_000,
      whenAbsent: "trust",
      onStarted: () => undefined,
      onStopped: () => undefined,
      onError: (error) => assert.fail(String(error)),
    });
  };
  const first = open();
  await pass(clock, 1_000);
  const second = open();
  await pass(clock, 30_000);
  assert.deepEqual([first.mayWrite(), second.isHeld()], [true, false]);
  await first.stop();
  await pass(clock, 6_000);
  assert.deepEqual([first.mayWrite(), second.mayWrite()], [false, true]);
  const lease = await client.of(leaseKind).get({ namespace: "berth-system", name: "controllers" });
  assert.equal(lease.spec?.holderIdentity, second.identity);
  assert.equal(lease.spec?.leaseTransitions, 1);
  await second.stop();
});

test("equal Events are one that counts", async () => {
  const dropped: unknown[] = [];
  const recorder = createEventRecorder({
    client,
    clock,
    random,
    component: "berth.dev/vm-controller",
    instance: "node-1",
    onDropped: (why, error) => dropped.push([why, error]),
  });
  const object = configMap({ namespace: "prod", name: "web", uid: "u" });
  const details = {
    type: "Warning",
    reason: "LockError",
    message: "VM is locked (clone)",
  } as const;
  for (let i = 0; i < 3; i++) recorder.event(object, details);
  await recorder.stop();
  assert.deepEqual(dropped, []);
  const { items } = await client.of(eventKind).list({ namespace: "prod" });
  assert.deepEqual(
    items.map(({ reason, count, involvedObject }) => [reason, count, involvedObject.name]),
    [["LockError", 3, "web"]],
  );
});

test("a controller follows its objects from creation to the end of their finalizer", async () => {
  const maps = client.of(configMapResource);
  const finalizer = "berth.dev/test";
  const story: string[] = [];
  const informer = createInformer({
    client,
    kind: configMapResource,
    namespace: "prod",
    clock,
    random,
  });
  const controller = startController({
    name: "map",
    sources: [ownObjects(informer)],
    clock,
    random,
    reconcile: async (key) => {
      const object = informer.get(key);
      if (object === undefined) {
        story.push("gone");
        return settled;
      }
      if (object.metadata.deletionTimestamp !== undefined) {
        await removeFinalizer(maps, object, finalizer);
        story.push("released");
        return settled;
      }
      const isNew = !object.metadata.finalizers?.includes(finalizer);
      await addFinalizer(maps, object, finalizer);
      if (isNew) story.push("held");
      return isNew ? again("Held", 1_000) : settled;
    },
  });
  await controller.started;
  await maps.create(configMap({ namespace: "prod", name: "web", finalizers: ["other.dev/x"] }));
  await pass(clock, 3_000);
  await maps.delete({ namespace: "prod", name: "web" });
  await pass(clock, 3_000);
  const left = await maps.get({ namespace: "prod", name: "web" });
  assert.deepEqual(left.metadata.finalizers, ["other.dev/x"]);
  await removeFinalizer(maps, left, "other.dev/x");
  await flush();
  assert.deepEqual([story[0], story.at(-1)], ["held", "gone"]);
  assert(story.includes("released"), story.join());
  await controller.stop();
  await informer.stop();
});
