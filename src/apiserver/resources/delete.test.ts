import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeList } from "../../kernel/object.ts";
import { gadget, openServer, type TestServer } from "./testing/server.ts";

async function make(server: TestServer, name: string, metadata: object = {}): Promise<string> {
  const answer = await server.ask("create", "gadgets", { body: gadget(name, { metadata }) });
  assert.equal(answer.status, 201, answer.text);
  return answer.body.metadata.uid ?? "";
}

test("an object without finalizers goes at once, and the answer says which it was", async () => {
  const server = await openServer();
  const uid = await make(server, "a");
  const { status, body } = await server.ask("delete", "gadgets", { name: "a" });
  assert.equal(status, 200);
  assert.deepEqual(body, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name: "a", group: "berth.dev", kind: "gadgets", uid },
  });
  assert.equal((await server.refusal("delete", "gadgets", { name: "a" })).code, 404);
});

test("an object with finalizers is marked, is a new generation, and stays", async () => {
  const server = await openServer();
  await make(server, "a", { finalizers: ["berth.dev/x"] });
  const { status, body } = await server.ask("delete", "gadgets", { name: "a" });
  assert.equal(status, 200);
  assert.equal(body.kind, "Gadget");
  assert.equal(body.metadata.deletionTimestamp, "2026-01-02T03:04:05Z");
  assert.equal(body.metadata.deletionGracePeriodSeconds, 0);
  assert.equal(body.metadata.generation, 2);
  server.clock.advance(5000);
  const revision = server.store.revision();
  const again = await server.ask("delete", "gadgets", { name: "a" });
  assert.deepEqual(again.body, body);
  assert.equal(server.store.revision(), revision);
});

test("the policy becomes a finalizer of the garbage collector", async () => {
  const server = await openServer();
  const cases = [
    { options: { propagationPolicy: "Foreground" }, finalizers: ["foregroundDeletion"] },
    { options: { propagationPolicy: "Orphan" }, finalizers: ["orphan"] },
    { options: { orphanDependents: true }, finalizers: ["orphan"] },
  ];
  for (const [at, { options, finalizers }] of cases.entries()) {
    await make(server, `in-body-${at}`);
    const body = { kind: "DeleteOptions", apiVersion: "v1", ...options };
    const inBody = await server.ask("delete", "gadgets", { name: `in-body-${at}`, body });
    assert.deepEqual(inBody.body.metadata.finalizers, finalizers);
    await make(server, `in-query-${at}`);
    const query = Object.fromEntries(Object.entries(options).map(([k, v]) => [k, String(v)]));
    const inQuery = await server.ask("delete", "gadgets", { name: `in-query-${at}`, query });
    assert.deepEqual(inQuery.body.metadata.finalizers, finalizers);
  }
  await make(server, "b");
  const query = { propagationPolicy: "Background" };
  const background = await server.ask("delete", "gadgets", { name: "b", query });
  assert.equal(background.body.kind, "Status");
});

test("preconditions on uid and revision are kept", async () => {
  const server = await openServer();
  const uid = await make(server, "a");
  const refusedBy = (preconditions: object) =>
    server.refusal("delete", "gadgets", { name: "a", body: { preconditions } });
  const wrongUid = await refusedBy({ uid: "other" });
  assert.equal(wrongUid.code, 409);
  assert.equal(
    wrongUid.message,
    `Operation cannot be fulfilled on Gadget.berth.dev "a": the UID in the precondition (other) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
  );
  const wrongVersion = await refusedBy({ resourceVersion: "1" });
  assert.equal(wrongVersion.code, 409);
  assert.match(wrongVersion.message ?? "", /The object might have been modified$/);
  const body = { preconditions: { uid } };
  assert.equal((await server.ask("delete", "gadgets", { name: "a", body })).status, 200);
});

test("an object that was modified is not deleted where a uid is sent beside its version", async () => {
  const server = await openServer();
  const uid = await make(server, "a");
  const body = { preconditions: { uid, resourceVersion: "1" } };
  const refused = await server.refusal("delete", "gadgets", { name: "a", body });
  assert.equal(refused.code, 409);
  assert.match(refused.message ?? "", /The object might have been modified$/);
  assert.equal((await server.ask("get", "gadgets", { name: "a" })).status, 200);
});

test("a dry run deletes nothing, wherever it is asked for", async () => {
  const server = await openServer();
  await make(server, "a");
  const inQuery = await server.ask("delete", "gadgets", { name: "a", query: { dryRun: "All" } });
  assert.equal(inQuery.status, 200);
  const inBody = await server.ask("delete", "gadgets", { name: "a", body: { dryRun: ["All"] } });
  assert.equal(inBody.status, 200);
  const both = await server.ask("delete", "gadgets", {
    name: "a",
    query: { dryRun: "All" },
    body: {},
  });
  assert.equal(both.status, 200);
  assert.equal((await server.ask("get", "gadgets", { name: "a" })).status, 200);
});

test("options that make no sense are refused in Kubernetes' words", async () => {
  const server = await openServer();
  await make(server, "a");
  const policy = await server.refusal("delete", "gadgets", {
    name: "a",
    query: { propagationPolicy: "Sideways" },
  });
  assert.equal(policy.code, 422);
  assert.equal(
    policy.message,
    'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
  );
  const both = { propagationPolicy: "Orphan", orphanDependents: true };
  assert.equal((await server.refusal("delete", "gadgets", { name: "a", body: both })).code, 422);
  const wrong = [
    { gracePeriodSeconds: "soon" },
    { preconditions: 3 },
    { preconditions: { uid: 1 } },
    { dryRun: "All" },
    { orphanDependents: "yes" },
    { kind: "Pod" },
    "[]",
    "{",
  ];
  for (const body of wrong) {
    const refused = await server.refusal("delete", "gadgets", { name: "a", body });
    assert.equal(refused.code, 400, JSON.stringify(body));
  }
  assert.equal((await server.ask("get", "gadgets", { name: "a" })).status, 200);
});

test("a namespace becomes Terminating and stays until its content is gone", async () => {
  const server = await openServer();
  const { status, body } = await server.ask("delete", "namespaces", { name: "other" });
  assert.equal(status, 200);
  assert.deepEqual(body.status, { phase: "Terminating" });
  assert.deepEqual(body.spec, { finalizers: ["kubernetes"] });
  assert.ok(body.metadata.deletionTimestamp);
  const again = await server.ask("delete", "namespaces", { name: "other" });
  assert.deepEqual(again.body, body);
});

test("the namespaces that Berth needs cannot be deleted, and never all at once", async () => {
  const server = await openServer();
  for (const name of ["default", "kube-system", "berth-system"]) {
    const refused = await server.refusal("delete", "namespaces", { name });
    assert.equal(refused.code, 403);
    assert.equal(
      refused.message,
      `namespaces "${name}" is forbidden: this namespace may not be deleted`,
    );
  }
  assert.equal((await server.refusal("deletecollection", "namespaces")).code, 405);
});

test("a service account is returned as it was", async () => {
  const server = await openServer();
  await server.ask("create", "serviceaccounts", { body: { metadata: { name: "s" } } });
  const { body } = await server.ask("delete", "serviceaccounts", { name: "s" });
  assert.equal(body.kind, "ServiceAccount");
});

test("a collection is deleted by its selectors, and no other namespace is touched", async () => {
  const server = await openServer();
  await make(server, "a", { labels: { app: "x" } });
  await make(server, "b", { labels: { app: "y" } });
  await make(server, "c", { labels: { app: "x" }, finalizers: ["berth.dev/x"] });
  await server.ask("create", "gadgets", {
    namespace: "other",
    body: gadget("d", { metadata: { labels: { app: "x" } } }),
  });
  const { body } = await server.ask<KubeList>("deletecollection", "gadgets", {
    query: { labelSelector: "app=x" },
  });
  assert.equal(body.kind, "GadgetList");
  assert.deepEqual(
    body.items.map((item) => item.metadata.name),
    ["a", "c"],
  );
  const left = await server.ask<KubeList>("list", "gadgets", { namespace: undefined });
  const story = left.body.items.map(({ metadata }) => {
    return `${metadata.namespace}/${metadata.name}${metadata.deletionTimestamp ? " deleting" : ""}`;
  });
  assert.deepEqual(story, ["default/b", "default/c deleting", "other/d"]);
});

test("a collection is deleted up to its limit, and not at all in a dry run", async () => {
  const server = await openServer();
  for (const name of ["a", "b", "c"]) await make(server, name);
  await server.ask("deletecollection", "gadgets", { query: { dryRun: "All" } });
  assert.equal(server.store.count("berth.dev/gadgets"), 3);
  await server.ask("deletecollection", "gadgets", { query: { limit: "2" } });
  assert.equal(server.store.count("berth.dev/gadgets"), 1);
});
