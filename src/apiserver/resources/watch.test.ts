import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../kernel/limits.ts";
import { gadget, openServer, type Ask, type TestServer, type TestWatch } from "./testing/server.ts";

const merge = { "content-type": "application/merge-patch+json" };

async function make(server: TestServer, name: string, app = "x"): Promise<void> {
  const body = gadget(name, { metadata: { labels: { app } } });
  assert.equal((await server.ask("create", "gadgets", { body })).status, 201);
}

async function change(server: TestServer, name: string, body: unknown): Promise<void> {
  const { status, text } = await server.ask("patch", "gadgets", { name, headers: merge, body });
  assert.equal(status, 200, text);
}

test("without a revision a watch begins with what is there, then tells what happens", async () => {
  const server = await openServer();
  await make(server, "a");
  for (const query of [{}, { resourceVersion: "0" }]) {
    const watch = await server.watch("gadgets", { query });
    assert.equal(watch.response.status, 200);
    assert.equal(watch.response.headers["content-type"], "application/json");
    assert.deepEqual(watch.story, ["ADDED a"]);
    watch.leave();
  }
  const watch = await server.watch("gadgets");
  await make(server, "b");
  await change(server, "b", { spec: { size: 2 } });
  await server.ask("delete", "gadgets", { name: "a" });
  assert.deepEqual(watch.story, ["ADDED a", "ADDED b", "MODIFIED b", "DELETED a"]);
  const deleted = watch.events.at(-1)?.object;
  assert.equal(deleted?.metadata.resourceVersion, String(server.store.revision()));
  assert.deepEqual(deleted?.spec, { size: 1, colour: "red" });
});

test("from a revision a watch tells only what came after it", async () => {
  const server = await openServer();
  await make(server, "a");
  const resourceVersion = String(server.store.revision());
  await make(server, "b");
  const watch = await server.watch("gadgets", { query: { resourceVersion } });
  assert.deepEqual(watch.story, ["ADDED b"]);
  await make(server, "c");
  assert.deepEqual(watch.story, ["ADDED b", "ADDED c"]);
});

test("a watch sees its own namespace only, or all of them", async () => {
  const server = await openServer();
  const here = await server.watch("gadgets");
  const everywhere = await server.watch("gadgets", { namespace: undefined });
  await make(server, "a");
  await server.ask("create", "gadgets", { namespace: "other", body: gadget("b") });
  await server.ask("create", "configmaps", { body: { metadata: { name: "c" } } });
  assert.deepEqual(here.story, ["ADDED a"]);
  assert.deepEqual(everywhere.story, ["ADDED a", "ADDED b"]);
});

test("a revision that is forgotten is an error event, and the stream ends", async () => {
  const server = await openServer({ storeLimits: { historyMs: 1000 } });
  await make(server, "a");
  server.clock.advance(60_000);
  await server.store.compact(server.clock.nowMs());
  const compacted = server.store.compactedRevision();
  const watch = await server.watch("gadgets", { query: { resourceVersion: "1" } });
  assert.deepEqual(watch.events, [
    {
      type: "ERROR",
      object: {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: `too old resource version: 1 (${compacted})`,
        reason: "Expired",
        code: 410,
      },
    },
  ]);
  assert.ok(watch.isEnded);
  assert.equal(server.clock.timers, 0);
});

test("a revision that is still to come makes the client list again", async () => {
  const server = await openServer();
  const watch = await server.watch("gadgets", { query: { resourceVersion: "999" } });
  const [event] = watch.events;
  assert.equal(event?.type, "ERROR");
  assert.equal(event?.object["code"], 410);
  assert.ok(watch.isEnded);
});

test("an object that comes to match is added, one that no longer does is deleted", async () => {
  const server = await openServer();
  await make(server, "a", "x");
  await make(server, "b", "y");
  const watch = await server.watch("gadgets", { query: { labelSelector: "app=x" } });
  await change(server, "b", { metadata: { labels: { app: "x" } } });
  await change(server, "b", { spec: { size: 5 } });
  await change(server, "a", { metadata: { labels: { app: "y" } } });
  await change(server, "a", { spec: { size: 6 } });
  await server.ask("delete", "gadgets", { name: "a" });
  await server.ask("delete", "gadgets", { name: "b" });
  assert.deepEqual(watch.story, ["ADDED a", "ADDED b", "MODIFIED b", "DELETED a", "DELETED b"]);
  const left = watch.events[3]?.object;
  // What it last matched with, under the revision that took it away.
  assert.deepEqual(left?.metadata.labels, { app: "x" });
  const { revision } = { revision: Number(left?.metadata.resourceVersion) };
  assert.ok(revision > Number(watch.events[2]?.object.metadata.resourceVersion));
});

test("a watch of one name sees no other, not even one that begins alike", async () => {
  const server = await openServer();
  const query = { fieldSelector: "metadata.name=a" };
  const watch = await server.watch("gadgets", { query });
  await make(server, "ab");
  await make(server, "a");
  assert.deepEqual(watch.story, ["ADDED a"]);
});

test("bookmarks come now and then, and once more at the end of the time", async () => {
  const server = await openServer();
  const resourceVersion = String(server.store.revision());
  const query = { allowWatchBookmarks: "true", timeoutSeconds: "90", resourceVersion };
  const watch = await server.watch("gadgets", { query });
  const silent = await server.watch("gadgets", { query: { timeoutSeconds: "90" } });
  await server.ask("create", "configmaps", { body: { metadata: { name: "c" } } });
  server.clock.advance(limits.bookmarkEveryMs);
  assert.deepEqual(watch.events, [
    {
      type: "BOOKMARK",
      object: {
        kind: "Gadget",
        apiVersion: "berth.dev/v1",
        metadata: { resourceVersion: String(server.store.revision()) },
      },
    },
  ]);
  server.clock.advance(30_000);
  assert.deepEqual(watch.story, ["BOOKMARK 3", "BOOKMARK 3"]);
  assert.ok(watch.isEnded);
  assert.deepEqual(silent.story, []);
  assert.ok(silent.isEnded);
  assert.equal(server.clock.timers, 0);
});

test("a watch without a time ends between half an hour and an hour, and never later", async () => {
  const server = await openServer();
  const unbounded = await server.watch("gadgets");
  const endless = await server.watch("gadgets", { query: { timeoutSeconds: "999999999" } });
  server.clock.advance(30 * 60_000 - 1);
  assert.equal(unbounded.isEnded, false);
  server.clock.advance(30 * 60_000 + 1);
  assert.ok(unbounded.isEnded);
  assert.ok(endless.isEnded);
});

test("the initial events end with a marked bookmark where that is asked for", async () => {
  const server = await openServer();
  await make(server, "a");
  await make(server, "b");
  const query = {
    sendInitialEvents: "true",
    resourceVersionMatch: "NotOlderThan",
    allowWatchBookmarks: "true",
  };
  const watch = await server.watch("gadgets", { query });
  assert.deepEqual(watch.story, ["ADDED a", "ADDED b", "BOOKMARK 4"]);
  const annotations = watch.events[2]?.object.metadata.annotations ?? {};
  assert.equal(annotations["k8s.io/initial-events-end"], "true");
  const blueprint = annotations["kubernetes.io/initial-events-list-blueprint"] ?? "";
  assert.equal(JSON.parse(Buffer.from(blueprint, "base64").toString()).kind, "GadgetList");
  // Where bookmarks are allowed, a watch from nowhere gets it unasked, as from Kubernetes.
  const plain = await server.watch("gadgets", { query: { allowWatchBookmarks: "true" } });
  assert.deepEqual(plain.events, watch.events);
  const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  const table = await server.watch("gadgets", { headers, query: { allowWatchBookmarks: "true" } });
  assert.deepEqual(
    table.events.map(({ type }) => type),
    ["ADDED", "ADDED"],
  );
  await make(server, "c");
  assert.deepEqual(watch.story.at(-1), "ADDED c");
  const none = await server.watch("gadgets", {
    query: { sendInitialEvents: "false", resourceVersionMatch: "NotOlderThan" },
  });
  assert.deepEqual(none.story, []);
  const future = await server.refusal("watch", "gadgets", {
    query: { ...query, resourceVersion: "999" },
  });
  assert.equal(future.code, 504);
});

test("options of watches that contradict each other are refused", async () => {
  const server = await openServer();
  const cases: [string, RegExp][] = [
    [
      "sendInitialEvents=true",
      /sendInitialEvents requires setting resourceVersionMatch to NotOlderThan$/,
    ],
    [
      "resourceVersionMatch=NotOlderThan",
      /forbidden for watch unless sendInitialEvents is provided$/,
    ],
  ];
  for (const [query, message] of cases) {
    const refused = await server.refusal("watch", "gadgets", { query });
    assert.equal(refused.code, 422);
    assert.match(refused.message ?? "", message);
  }
  const accept = { headers: { accept: "application/yaml" } };
  assert.equal((await server.refusal("watch", "gadgets", accept)).code, 406);
});

test("a watch of tables gives the columns once", async () => {
  const server = await openServer();
  await make(server, "a");
  const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  const watch = await server.watch("gadgets", { headers });
  server.clock.advance(5000);
  await make(server, "b");
  const tables = watch.events.map(({ object }) => object);
  assert.deepEqual(
    tables.map(({ kind }) => kind),
    ["Table", "Table"],
  );
  const columns = tables.map((table) => (table["columnDefinitions"] as unknown[]).length);
  assert.deepEqual(columns, [5, 0]);
  const rows = tables[1]?.["rows"] as { cells: unknown[]; object: { kind: string } }[];
  const [row] = rows;
  assert.deepEqual(row?.cells, ["b", 1, null, null, "0s"]);
  assert.equal(row?.object.kind, "PartialObjectMetadata");
  assert.equal(tables[1]?.metadata.resourceVersion, String(server.store.revision()));
});

test("a watch of metadata has nothing else", async () => {
  const server = await openServer();
  await make(server, "a");
  const headers = { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" };
  const watch = await server.watch("gadgets", { headers, query: { allowWatchBookmarks: "true" } });
  const object = watch.events[0]?.object;
  assert.deepEqual(Object.keys(object ?? {}), ["kind", "apiVersion", "metadata"]);
  assert.equal(object?.apiVersion, "meta.k8s.io/v1");
  assert.equal(watch.events[1]?.type, "BOOKMARK");
  assert.equal(watch.events[1]?.object.kind, "PartialObjectMetadata");
});

test("a reader that falls behind is closed, but not for what was there before it came", async () => {
  const server = await openServer();
  const parts = ["x".repeat(1024 * 1024)];
  for (const name of ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]) {
    await server.ask("create", "gadgets", { body: gadget(name, { spec: { parts } }) });
  }
  const response = await server.watch("gadgets", { query: { resourceVersion: "2" } });
  response.leave();
  const slow = await server.watch("gadgets", {}, { isSlow: true });
  assert.equal(slow.events.length, 10);
  assert.equal(slow.isEnded, false);
  for (let size = 2; size < 9; size++) await change(server, "a", { spec: { size } });
  assert.equal(slow.isEnded, false);
  for (let size = 9; size < 12; size++) await change(server, "a", { spec: { size } });
  assert.ok(slow.isEnded);
  const written = slow.events.length;
  await change(server, "a", { spec: { size: 99 } });
  assert.equal(slow.events.length, written);
  assert.equal(server.clock.timers, 0);
});

test("a reader that leaves, and a server that closes, leave nothing behind", async () => {
  const server = await openServer();
  const gone = await server.watch("gadgets", { query: { allowWatchBookmarks: "true" } });
  gone.leave();
  gone.leave();
  assert.equal(server.clock.timers, 0);
  await make(server, "a");
  assert.deepEqual(gone.story, ["BOOKMARK 2"]);
  assert.equal(gone.isEnded, false);
  const open = await server.watch("gadgets");
  server.handler.close();
  assert.ok(open.isEnded);
  assert.equal(server.clock.timers, 0);
  const refused = await server.refusal("watch", "gadgets");
  assert.equal(refused.code, 503);
});

test("a store that closes ends its watches", async () => {
  const server = await openServer();
  const watch = await server.watch("gadgets");
  await server.store.close();
  assert.ok(watch.isEnded);
  assert.equal(server.clock.timers, 0);
});

test("there is a bound on watches, and a place is free as soon as one ends", async () => {
  const server = await openServer();
  const watches: TestWatch[] = [];
  for (let count = 0; count < limits.watchesMax; count++)
    watches.push(await server.watch("gadgets"));
  const refused = await server.refusal("watch", "gadgets");
  assert.equal(refused.code, 429);
  assert.equal(refused.reason, "TooManyRequests");
  assert.equal(refused.details?.retryAfterSeconds, 1);
  watches[0]?.leave();
  const again = await server.watch("gadgets");
  assert.equal(again.isEnded, false);
  server.handler.close();
});

test("an event is encoded once, however many look", async () => {
  const server = await openServer();
  const chunks: Uint8Array[] = [];
  const what: Ask = {};
  for (let count = 0; count < 3; count++) {
    await server.watch("gadgets", what, { onChunk: (chunk) => chunks.push(chunk) });
  }
  await make(server, "a");
  assert.equal(chunks.length, 3);
  assert.equal(new Set(chunks).size, 1);
});
