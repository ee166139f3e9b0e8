import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../kernel/limits.ts";
import { gadget, openServer, seededRandom } from "./testing/server.ts";

test("a created object has what only the server can give it", async () => {
  const server = await openServer();
  const { status, body } = await server.ask("create", "gadgets", { body: gadget("a") });
  assert.equal(status, 201);
  assert.deepEqual(body, {
    apiVersion: "berth.dev/v1",
    kind: "Gadget",
    metadata: {
      name: "a",
      namespace: "default",
      uid: body.metadata.uid,
      generation: 1,
      creationTimestamp: "2026-01-02T03:04:05Z",
      resourceVersion: "3",
    },
    spec: { size: 1, colour: "red" },
  });
  assert.match(body.metadata.uid ?? "", /^00000000-/);
});

test("a creation does not overwrite the object that has the name: a Claim is one VM's", async () => {
  const server = await openServer();
  const first = await server.ask("create", "gadgets", { body: gadget("a") });
  const body = gadget("a", { spec: { size: 7, colour: "red" } });
  assert.equal((await server.ask("create", "gadgets", { body })).status, 409);
  const { body: there } = await server.ask("get", "gadgets", { name: "a" });
  assert.deepEqual(there, first.body);
});

test("what the server gives cannot be sent along", async () => {
  const server = await openServer();
  const { body } = await server.ask("create", "gadgets", {
    body: gadget("a", {
      metadata: {
        uid: "mine",
        generation: 7,
        creationTimestamp: "2000-01-01T00:00:00Z",
        deletionTimestamp: "2000-01-01T00:00:00Z",
        deletionGracePeriodSeconds: 5,
        selfLink: "/x",
        managedFields: [{ manager: "me", operation: "Update" }],
      },
      status: { phase: "Done" },
    }),
  });
  assert.equal(body.status, undefined);
  assert.deepEqual(Object.keys(body.metadata), [
    "name",
    "namespace",
    "uid",
    "generation",
    "creationTimestamp",
    "resourceVersion",
  ]);
  assert.notEqual(body.metadata.uid, "mine");
  assert.equal(body.metadata.generation, 1);
});

test("the stored bytes begin with apiVersion, kind and metadata and carry their revision", async () => {
  const server = await openServer();
  const body = {
    spec: { size: 1 },
    metadata: { name: "a" },
    kind: "Gadget",
    apiVersion: "berth.dev/v1",
  };
  await server.ask("create", "gadgets", { body });
  const entry = server.store.get({ bucket: "berth.dev/gadgets", id: "default/a" });
  const text = Buffer.from(entry?.value ?? []).toString();
  assert.match(text, /^\{"apiVersion":"berth.dev\/v1","kind":"Gadget","metadata":\{/);
  assert.equal(JSON.parse(text).metadata.resourceVersion, String(entry?.revision));
});

test("a kind without a status subresource keeps the status it is sent", async () => {
  const server = await openServer();
  const body = { ...gadget("n"), kind: "Note", status: { phase: "Fresh" } };
  const { body: note } = await server.ask("create", "notes", { body });
  assert.deepEqual(note.status, { phase: "Fresh" });
});

test("generateName makes names until one is free", async () => {
  const numbers = [...Array(5).fill(0), ...Array(5).fill(0), ...Array(5).fill(0.5)];
  const random = { ...seededRandom(), number: () => numbers.shift() ?? 0.9 };
  const server = await openServer({ random });
  const body = { ...gadget(""), metadata: { generateName: "g-" } };
  const first = await server.ask("create", "gadgets", { body });
  assert.equal(first.body.metadata.name, "g-bbbbb");
  assert.equal(first.body.metadata.generateName, "g-");
  const second = await server.ask("create", "gadgets", { body });
  assert.equal(second.status, 201);
  assert.notEqual(second.body.metadata.name, "g-bbbbb");
});

test("a generated name is never too long, however long its prefix", async () => {
  const server = await openServer();
  const body = { ...gadget(""), metadata: { generateName: "g".repeat(80) } };
  const created = await server.ask("create", "gadgets", { body });
  assert.equal(created.status, 201);
  assert.equal(created.body.metadata.name?.length, 63);
});

test("generateName gives up after eight names that are taken", async () => {
  const random = { ...seededRandom(), number: () => 0 };
  const server = await openServer({ random });
  const body = { ...gadget(""), metadata: { generateName: "g-" } };
  await server.ask("create", "gadgets", { body });
  const refused = await server.refusal("create", "gadgets", { body });
  assert.equal(refused.code, 409);
  assert.equal(refused.reason, "AlreadyExists");
  assert.match(refused.message ?? "", /not able to generate a unique name for the object$/);
  assert.equal(refused.details?.retryAfterSeconds, 1);
});

test("a name that is taken is refused, and the refusal says if it is being freed", async () => {
  const server = await openServer();
  const body = gadget("a", { metadata: { finalizers: ["berth.dev/x"] } });
  await server.ask("create", "gadgets", { body });
  const refused = await server.refusal("create", "gadgets", { body });
  assert.equal(refused.message, 'gadgets.berth.dev "a" already exists');
  assert.deepEqual(refused.details, { name: "a", group: "berth.dev", kind: "gadgets" });
  await server.ask("delete", "gadgets", { name: "a" });
  const going = await server.refusal("create", "gadgets", { body });
  assert.equal(going.message, 'object is being deleted: gadgets.berth.dev "a" already exists');
});

test("an object with a resourceVersion cannot be created", async () => {
  const server = await openServer();
  const body = gadget("a", { metadata: { resourceVersion: "5" } });
  const refused = await server.refusal("create", "gadgets", { body });
  assert.equal(refused.code, 400);
  assert.equal(refused.message, "resourceVersion should not be set on objects to be created");
});

test("nothing is created in a namespace that does not exist", async () => {
  const server = await openServer();
  const refused = await server.refusal("create", "gadgets", { namespace: "no", body: gadget("a") });
  assert.equal(refused.code, 404);
  assert.equal(refused.message, 'namespaces "no" not found');
});

test("nothing is created in a namespace that is being terminated", async () => {
  const server = await openServer();
  await server.ask("delete", "namespaces", { name: "other" });
  const refused = await server.refusal("create", "gadgets", {
    namespace: "other",
    body: gadget("a"),
  });
  assert.equal(refused.code, 403);
  assert.equal(
    refused.message,
    'gadgets.berth.dev "a" is forbidden: unable to create new content in namespace other because it is being terminated',
  );
  assert.deepEqual(refused.details?.causes, [
    {
      reason: "NamespaceTerminating",
      message: "namespace other is being terminated",
      field: "metadata.namespace",
    },
  ]);
});

test("the namespace of the object must be that of the URL", async () => {
  const server = await openServer();
  const body = gadget("a", { metadata: { namespace: "other" } });
  const refused = await server.refusal("create", "gadgets", { body });
  assert.equal(refused.code, 400);
  assert.equal(
    refused.message,
    "the namespace of the provided object does not match the namespace sent on the request",
  );
});

test("a dry run answers as if, and stores nothing", async () => {
  const server = await openServer();
  const revision = server.store.revision();
  const dry = await server.ask("create", "gadgets", {
    body: gadget("a"),
    query: { dryRun: "All" },
  });
  assert.equal(dry.status, 201);
  assert.equal(dry.body.metadata.resourceVersion, undefined);
  assert.equal(server.store.revision(), revision);
  await server.ask("create", "gadgets", { body: gadget("a") });
  const query = { dryRun: "All" };
  assert.equal((await server.refusal("create", "gadgets", { body: gadget("a"), query })).code, 409);
});

test("names, labels and the schema are checked, and all that is wrong is said", async () => {
  const server = await openServer();
  const body = gadget("A_", { metadata: { labels: { "bad key": "x" } }, spec: { size: -1 } });
  const refused = await server.refusal("create", "gadgets", { body });
  assert.equal(refused.code, 422);
  const fields = refused.details?.causes?.map((cause) => cause.field);
  assert.deepEqual(fields, ["metadata.name", "metadata.labels", "spec.size"]);
  const none = await server.refusal("create", "gadgets", { body: gadget("") });
  assert.equal(
    none.message,
    'Gadget.berth.dev "" is invalid: metadata.name: Required value: name or generateName is required',
  );
});

test("an object beyond the size that etcd takes is refused, and nothing is lost", async () => {
  const server = await openServer();
  const data = { big: "x".repeat(limits.objectBytes) };
  const body = { metadata: { name: "a" }, data };
  const refused = await server.refusal("create", "configmaps", { body });
  assert.ok(refused.code === 413 || refused.code === 422);
  const parts = Array.from({ length: 20 }, () => "x".repeat(80_000));
  const large = gadget("a", { spec: { parts } });
  const tooLarge = await server.refusal("create", "gadgets", { body: large });
  assert.equal(tooLarge.code, 413);
  assert.equal(tooLarge.message, `Request entity too large: limit is ${limits.objectBytes}`);
  assert.equal((await server.ask("create", "gadgets", { body: gadget("a") })).status, 201);
});

test("a namespace carries its name as a label and its own finalizer, and is active", async () => {
  const server = await openServer();
  const { body } = await server.ask("create", "namespaces", { body: { metadata: { name: "n" } } });
  assert.deepEqual(body.metadata.labels, { "kubernetes.io/metadata.name": "n" });
  assert.deepEqual(body.spec, { finalizers: ["kubernetes"] });
  assert.deepEqual(body.status, { phase: "Active" });
  assert.equal(body.metadata.generation, undefined);
});

test("owner references that say the same twice are kept once, with a warning", async () => {
  const server = await openServer();
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "c", uid: "u" };
  const body = gadget("a", { metadata: { ownerReferences: [owner, owner] } });
  const { body: created, headers } = await server.ask("create", "gadgets", { body });
  assert.deepEqual(created.metadata.ownerReferences, [owner]);
  assert.match(headers["warning"] ?? "", /^299 - "\.metadata\.ownerReferences contains duplicate/);
});

test("a finalizer that anybody might use gets a warning", async () => {
  const server = await openServer();
  const body = gadget("a", { metadata: { finalizers: ["mine"] } });
  const { headers } = await server.ask("create", "gadgets", { body });
  assert.match(headers["warning"] ?? "", /prefer a domain-qualified finalizer name to avoid/);
});

test("a full disk refuses in one sentence, and serves again when there is room", async () => {
  const server = await openServer();
  server.disk.setFault("full");
  const refused = await server.refusal("create", "gadgets", { body: gadget("a") });
  assert.equal(refused.code, 507);
  assert.equal(refused.reason, "InsufficientStorage");
  server.disk.setFault(undefined);
  assert.equal((await server.ask("create", "gadgets", { body: gadget("a") })).status, 201);
});

test("too many waiting writes are refused with a time to come again", async () => {
  const server = await openServer({ storeLimits: { pendingWrites: 1 } });
  const answers = await Promise.all([
    server.ask("create", "gadgets", { body: gadget("a") }),
    server.ask("create", "gadgets", { body: gadget("b") }),
  ]);
  assert.deepEqual(new Set(answers.map((answer) => answer.status)), new Set([201, 429]));
});

test("a closed store is a server that shuts down", async () => {
  const server = await openServer();
  await server.store.close();
  const refused = await server.refusal("create", "gadgets", { body: gadget("a") });
  assert.equal(refused.code, 503);
  assert.equal(refused.reason, "ServiceUnavailable");
});
