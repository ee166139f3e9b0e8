import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createClient, type Kind } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { addFinalizer, removeFinalizer } from "./finalizers.ts";
import { FakeApi } from "./testing.ts";

const kind: Kind = {
  group: "berth.dev",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
};
const at = { namespace: "default", name: "a" };
const ours = "berth.dev/vm";

async function open(finalizers?: string[]) {
  const api = new FakeApi();
  const objects = createClient({ transport: api.transport, clock: new VirtualClock() }).of(kind);
  const metadata = { ...at, ...(finalizers ? { finalizers } : {}) };
  const object = await objects.create({ apiVersion: "berth.dev/v1", kind: "Widget", metadata });
  const setTo = (next: string[] | null): Promise<KubeObject> => {
    return objects.patch(at, { merge: { metadata: { finalizers: next } } });
  };
  const now = async (): Promise<string[] | undefined> => {
    return (await objects.get(at)).metadata.finalizers;
  };
  return { api, objects, object, setTo, now };
}

const conflict = { code: 409, reason: "Conflict" };

describe("adding a finalizer", () => {
  test("makes the list, or appends to it", async () => {
    const empty = await open();
    await addFinalizer(empty.objects, empty.object, ours);
    assert.deepEqual(await empty.now(), [ours]);
    const shared = await open(["x/y"]);
    const next = await addFinalizer(shared.objects, shared.object, ours);
    assert.deepEqual(next.metadata.finalizers, ["x/y", ours]);
  });

  test("asks nobody if it is there", async () => {
    const { api, objects, object } = await open([ours]);
    const requests = api.requests.length;
    assert.equal(await addFinalizer(objects, object, ours), object);
    assert.equal(api.requests.length, requests);
  });

  for (const before of [undefined, ["x/y"]]) {
    const what = before ? "the list" : "the absence of one";
    test(`is a conflict if others changed ${what}`, async () => {
      const { objects, object, setTo, now } = await open(before);
      await setTo(["other/one"]);
      await assert.rejects(addFinalizer(objects, object, ours), conflict);
      assert.deepEqual(await now(), ["other/one"]);
    });
  }

  test("is a conflict if the list was removed", async () => {
    const { objects, object, setTo } = await open(["x/y"]);
    await setTo(null);
    await assert.rejects(addFinalizer(objects, object, ours), conflict);
  });

  test("touches no other object of the same name", async () => {
    const { objects, object, now } = await open();
    await objects.delete(at);
    await objects.create({ ...object, metadata: at });
    await assert.rejects(addFinalizer(objects, object, ours), { code: 404 });
    assert.equal(await now(), undefined);
  });
});

describe("removing a finalizer", () => {
  test("leaves those of others in their order", async () => {
    const { objects, object, now } = await open(["a/a", ours, "b/b"]);
    await removeFinalizer(objects, object, ours);
    assert.deepEqual(await now(), ["a/a", "b/b"]);
  });

  test("does not mind others that came behind it", async () => {
    const { objects, object, setTo, now } = await open([ours]);
    await setTo([ours, "b/b"]);
    await removeFinalizer(objects, object, ours);
    assert.deepEqual(await now(), ["b/b"]);
  });

  test("is a conflict if another stands in its place", async () => {
    const { objects, object, setTo, now } = await open(["a/a", ours]);
    await setTo([ours, "a/a"]);
    await assert.rejects(removeFinalizer(objects, object, ours), conflict);
    assert.deepEqual(await now(), [ours, "a/a"]);
  });

  test("is done where it is not there, and where the object is gone", async () => {
    const absent = await open(["a/a"]);
    assert.equal(await removeFinalizer(absent.objects, absent.object, ours), absent.object);
    const gone = await open([ours]);
    await gone.objects.delete(at);
    assert.equal(await removeFinalizer(gone.objects, gone.object, ours), undefined);
    await gone.objects.create({ ...gone.object, metadata: { ...at, finalizers: [ours] } });
    assert.equal(await removeFinalizer(gone.objects, gone.object, ours), undefined);
    assert.deepEqual(await gone.now(), [ours]);
  });

  test("passes on what has another cause", async () => {
    const { api, objects, object } = await open([ours]);
    api.fault = "refuses";
    await assert.rejects(removeFinalizer(objects, object, ours), { code: 503 });
  });
});
