import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { gadget, openServer, type TestServer } from "./testing/server.ts";

async function created(
  server: TestServer,
  fields: Record<string, unknown> = {},
): Promise<KubeObject> {
  return (await server.ask("create", "gadgets", { body: gadget("a", fields) })).body;
}

function changed(object: KubeObject, fields: Record<string, unknown>): KubeObject {
  const { metadata = {}, ...rest } = fields;
  return { ...object, ...rest, metadata: { ...object.metadata, ...(metadata as object) } };
}

test("a change of the spec is a new revision and a new generation", async () => {
  const server = await openServer();
  const before = await created(server);
  const sent = changed(before, { spec: { size: 2 } });
  const { status, body } = await server.ask("update", "gadgets", { name: "a", body: sent });
  assert.equal(status, 200);
  assert.deepEqual(body.spec, { size: 2, colour: "red" });
  assert.equal(body.metadata.generation, 2);
  assert.ok(Number(body.metadata.resourceVersion) > Number(before.metadata.resourceVersion));
  assert.equal(body.metadata.uid, before.metadata.uid);
});

test("an update of an older version does not overwrite what somebody else wrote since", async () => {
  const server = await openServer();
  const before = await created(server);
  const theirs = changed(before, { spec: { size: 2 } });
  await server.ask("update", "gadgets", { name: "a", body: theirs });
  const ours = changed(before, { spec: { size: 3 } });
  assert.equal((await server.ask("update", "gadgets", { name: "a", body: ours })).status, 409);
  const { body } = await server.ask("get", "gadgets", { name: "a" });
  assert.deepEqual(body.spec, { size: 2, colour: "red" });
});

test("a change of metadata alone is no new generation", async () => {
  const server = await openServer();
  const sent = changed(await created(server), { metadata: { labels: { a: "b" } } });
  const { body } = await server.ask("update", "gadgets", { name: "a", body: sent });
  assert.deepEqual(body.metadata.labels, { a: "b" });
  assert.equal(body.metadata.generation, 1);
});

test("an update that changes nothing writes nothing and keeps the revision", async () => {
  const server = await openServer();
  const before = await created(server);
  const revision = server.store.revision();
  // The same in another order, and with what the server gave left out.
  const { resourceVersion } = before.metadata;
  const sent = { spec: { colour: "red", size: 1 }, kind: "Gadget", apiVersion: "berth.dev/v1" };
  const metadata = { resourceVersion, name: "a" };
  const { body } = await server.ask("update", "gadgets", {
    name: "a",
    body: { ...sent, metadata },
  });
  assert.deepEqual(body, before);
  assert.equal(server.store.revision(), revision);
});

test("a stale update is a conflict, in the words that clients know", async () => {
  const server = await openServer();
  const stale = await created(server);
  await server.ask("update", "gadgets", { name: "a", body: changed(stale, { spec: { size: 2 } }) });
  const refused = await server.refusal("update", "gadgets", { name: "a", body: stale });
  assert.equal(refused.code, 409);
  assert.equal(refused.reason, "Conflict");
  assert.equal(
    refused.message,
    'Operation cannot be fulfilled on gadgets.berth.dev "a": the object has been modified; please apply your changes to the latest version and try again',
  );
});

test("a custom resource is not updated without a resourceVersion, a built-in kind is", async () => {
  const server = await openServer();
  await created(server);
  const refused = await server.refusal("update", "gadgets", { name: "a", body: gadget("a") });
  assert.equal(refused.code, 422);
  assert.equal(
    refused.message,
    'gadgets.berth.dev "a" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
  );
  const map = { metadata: { name: "m" }, data: { a: "1" } };
  await server.ask("create", "configmaps", { body: map });
  const sent = { ...map, data: { a: "2" } };
  const { status, body } = await server.ask("update", "configmaps", { name: "m", body: sent });
  assert.equal(status, 200);
  assert.deepEqual(body.data, { a: "2" });
});

test("what the schema cannot say, a built-in kind says itself", async () => {
  const server = await openServer();
  const map = { metadata: { name: "m" }, data: { a: "1" }, immutable: true };
  await server.ask("create", "configmaps", { body: map });
  const body = { ...map, data: { a: "2" } };
  const refused = await server.refusal("update", "configmaps", { name: "m", body });
  assert.equal(refused.code, 422);
  assert.match(refused.message ?? "", /field is immutable when `immutable` is set/);
});

test("an update never creates, and knows another object of the same name by its uid", async () => {
  const server = await openServer();
  const missing = await server.refusal("update", "gadgets", { name: "a", body: gadget("a") });
  assert.equal(missing.code, 404);
  assert.equal(missing.message, 'gadgets.berth.dev "a" not found');
  const first = await created(server);
  await server.ask("delete", "gadgets", { name: "a" });
  const gone = await server.refusal("update", "gadgets", { name: "a", body: first });
  assert.equal(gone.code, 409);
  await created(server);
  const other = await server.refusal("update", "gadgets", { name: "a", body: first });
  assert.equal(other.code, 409);
  assert.match(other.message ?? "", /Precondition failed: UID in precondition: /);
});

test("the name in the body must be that of the URL", async () => {
  const server = await openServer();
  const before = await created(server);
  const body = changed(before, { metadata: { name: "b" } });
  const refused = await server.refusal("update", "gadgets", { name: "a", body });
  assert.equal(refused.code, 400);
  assert.equal(
    refused.message,
    "the name of the object (b) does not match the name on the URL (a)",
  );
});

test("the main door leaves the status alone, the status door everything else", async () => {
  const server = await openServer();
  const before = await created(server);
  const main = changed(before, { spec: { size: 5 }, status: { phase: "Forged" } });
  const updated = await server.ask("update", "gadgets", { name: "a", body: main });
  assert.equal(updated.body.status, undefined);
  assert.equal(updated.body.metadata.generation, 2);
  const status = changed(updated.body, {
    spec: { size: 9 },
    status: { phase: "Seen" },
    metadata: { labels: { a: "b" } },
  });
  const observed = await server.ask("update", "gadgets", {
    name: "a",
    subresource: "status",
    body: status,
  });
  assert.deepEqual(observed.body.status, { phase: "Seen" });
  assert.deepEqual(observed.body.spec, { size: 5, colour: "red" });
  assert.equal(observed.body.metadata.labels, undefined);
  assert.equal(observed.body.metadata.generation, 2);
  const { status: _dropped, ...withoutStatus } = observed.body;
  const kept = await server.ask("update", "gadgets", { name: "a", body: withoutStatus });
  assert.deepEqual(kept.body.status, { phase: "Seen" });
});

test("without a status subresource every change but of metadata is a generation", async () => {
  const server = await openServer();
  const note = { ...gadget("n"), kind: "Note" };
  const { body: before } = await server.ask("create", "notes", { body: note });
  const sent = changed(before, { status: { phase: "New" } });
  const { body } = await server.ask("update", "notes", { name: "n", body: sent });
  assert.equal(body.metadata.generation, 2);
  const labelled = changed(body, { metadata: { labels: { a: "b" } } });
  const after = await server.ask("update", "notes", { name: "n", body: labelled });
  assert.equal(after.body.metadata.generation, 2);
});

test("what the server gave cannot be changed", async () => {
  const server = await openServer();
  const before = await created(server);
  const forged = changed(before, {
    metadata: { generation: 99, creationTimestamp: "2000-01-01T00:00:00Z", labels: { a: "b" } },
  });
  const { body } = await server.ask("update", "gadgets", { name: "a", body: forged });
  assert.equal(body.metadata.generation, 1);
  assert.equal(body.metadata.creationTimestamp, before.metadata.creationTimestamp);
  const deleting = changed(body, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } });
  const refused = await server.refusal("update", "gadgets", { name: "a", body: deleting });
  assert.equal(refused.code, 422);
  assert.match(refused.message ?? "", /metadata.deletionTimestamp: .*field is immutable$/);
});

test("finalizers can only be taken from an object that is being deleted, and the last one frees it", async () => {
  const server = await openServer();
  await created(server, { metadata: { finalizers: ["berth.dev/a", "berth.dev/b"] } });
  const { body: going } = await server.ask("delete", "gadgets", { name: "a" });
  const more = changed(going, { metadata: { finalizers: ["berth.dev/a", "berth.dev/c"] } });
  const refused = await server.refusal("update", "gadgets", { name: "a", body: more });
  assert.equal(refused.code, 422);
  assert.match(
    refused.message ?? "",
    /metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \[\]string\{"berth.dev\/c"\}$/,
  );
  const one = changed(going, { metadata: { finalizers: ["berth.dev/b"] } });
  const left = await server.ask("update", "gadgets", { name: "a", body: one });
  assert.equal(left.body.metadata.deletionTimestamp, going.metadata.deletionTimestamp);
  const undone = changed(left.body, { metadata: { finalizers: [], deletionTimestamp: null } });
  const last = await server.ask("update", "gadgets", { name: "a", body: undone });
  assert.equal(last.status, 200);
  assert.equal((await server.refusal("get", "gadgets", { name: "a" })).code, 404);
});

test("a dry run of an update answers as if, and stores nothing", async () => {
  const server = await openServer();
  const before = await created(server);
  const revision = server.store.revision();
  const { body } = await server.ask("update", "gadgets", {
    name: "a",
    query: { dryRun: "All" },
    body: changed(before, { spec: { size: 2 } }),
  });
  assert.equal(body.metadata.generation, 2);
  assert.equal(body.metadata.resourceVersion, before.metadata.resourceVersion);
  assert.equal(server.store.revision(), revision);
});

test("writers that wait for each other cannot both win with the same revision", async () => {
  const server = await openServer();
  const before = await created(server);
  const answers = await Promise.all(
    [1, 2, 3, 4].map((size) =>
      server.ask("update", "gadgets", {
        name: "a",
        body: changed(before, { spec: { size: size + 10 } }),
      }),
    ),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 409, 409, 409],
  );
});

test("a namespace keeps its finalizer and phase whatever an update says", async () => {
  const server = await openServer();
  const { body: before } = await server.ask("get", "namespaces", { name: "other" });
  const sent = changed(before, { spec: { finalizers: [] }, status: { phase: "Terminating" } });
  const { body } = await server.ask("update", "namespaces", { name: "other", body: sent });
  assert.deepEqual(body, before);
});
