import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { gadget, openServer, type TestServer } from "./testing/server.ts";

const merge = { "content-type": "application/merge-patch+json" };

async function scaled(): Promise<{ server: TestServer; before: KubeObject }> {
  const server = await openServer();
  const body = gadget("a", { spec: { replicas: 3 } });
  await server.ask("create", "gadgets", { body });
  const { body: before } = await server.ask("patch", "gadgets", {
    name: "a",
    subresource: "status",
    headers: merge,
    body: { status: { replicas: 2, selector: "app=a" } },
  });
  return { server, before };
}

test("a scale shows the number that is wanted, the one that is there, and whose", async () => {
  const { server, before } = await scaled();
  const { body } = await server.ask("get", "gadgets", { name: "a", subresource: "scale" });
  const { name, namespace, uid, resourceVersion, creationTimestamp } = before.metadata;
  assert.deepEqual(body, {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: 3 },
    status: { replicas: 2, selector: "app=a" },
  });
});

test("a scale is patched as kubectl does, and changes only the number", async () => {
  const { server, before } = await scaled();
  const { body } = await server.ask("patch", "gadgets", {
    name: "a",
    subresource: "scale",
    headers: merge,
    body: { spec: { replicas: 5 } },
  });
  assert.equal(body.kind, "Scale");
  assert.deepEqual(body.spec, { replicas: 5 });
  const { body: after } = await server.ask("get", "gadgets", { name: "a" });
  assert.deepEqual(after.spec, { replicas: 5, colour: "red" });
  assert.deepEqual(after.status, before.status);
  assert.equal(after.metadata.generation, 2);
});

test("a scale is replaced, with or without a revision to be held against", async () => {
  const { server } = await scaled();
  const { body: scale } = await server.ask("get", "gadgets", { name: "a", subresource: "scale" });
  const put = (body: unknown) =>
    server.ask("update", "gadgets", { name: "a", subresource: "scale", body });
  assert.equal((await put({ ...scale, spec: { replicas: 7 } })).status, 200);
  assert.equal((await put({ ...scale, spec: { replicas: 8 } })).status, 409);
  const { resourceVersion: _old, ...metadata } = scale.metadata;
  const { body } = await put({ ...scale, metadata, spec: {} });
  assert.deepEqual(body.spec, { replicas: 0 });
});

test("a scale that is no number, or below zero, is refused", async () => {
  const { server } = await scaled();
  const patched = (replicas: unknown) =>
    server.refusal("patch", "gadgets", {
      name: "a",
      subresource: "scale",
      headers: merge,
      body: { spec: { replicas } },
    });
  for (const wrong of ["many", 1.5, 2 ** 40, true, {}]) {
    const refused = await patched(wrong);
    assert.equal(refused.code, 422);
    assert.match(refused.message ?? "", /Go struct field ScaleSpec.spec.replicas of type int32$/);
  }
  const negative = await patched(-1);
  assert.equal(negative.code, 422);
  assert.equal(
    negative.message,
    'Gadget.berth.dev "a" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer',
  );
});

test("what has no number has no scale", async () => {
  const server = await openServer();
  await server.ask("create", "gadgets", { body: gadget("a") });
  const refused = await server.refusal("get", "gadgets", { name: "a", subresource: "scale" });
  assert.equal(refused.code, 500);
  assert.equal(
    refused.message,
    'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
  );
});

test("strict decoding of a scale names what it does not know", async () => {
  const { server } = await scaled();
  const refused = await server.refusal("patch", "gadgets", {
    name: "a",
    subresource: "scale",
    headers: merge,
    query: { fieldValidation: "Strict" },
    body: { spec: { replica: 5 } },
  });
  assert.match(refused.message ?? "", /strict decoding error: unknown field "spec.replica"$/);
});

test("parts of an object neither come nor go by themselves", async () => {
  const { server } = await scaled();
  for (const verb of ["create", "delete", "list", "watch"] as const) {
    const refused = await server.refusal(verb, "gadgets", { name: "a", subresource: "scale" });
    assert.equal(refused.code, 405);
  }
});
