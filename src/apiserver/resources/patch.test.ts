import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { gadget, openServer, type Ask, type TestServer } from "./testing/server.ts";

const merge = { "content-type": "application/merge-patch+json" };
const json = { "content-type": "application/json-patch+json" };
const strategic = { "content-type": "application/strategic-merge-patch+json" };

async function serverWithGadget(): Promise<{ server: TestServer; before: KubeObject }> {
  const server = await openServer();
  const { body: before } = await server.ask("create", "gadgets", { body: gadget("a") });
  return { server, before };
}

function patchOf(body: unknown, more: Partial<Ask> = {}): Ask {
  return { name: "a", headers: merge, body, ...more };
}

test("a merge patch changes what it names and removes what it nulls", async () => {
  const { server } = await serverWithGadget();
  const { status, body } = await server.ask(
    "patch",
    "gadgets",
    patchOf({ spec: { colour: "blue", size: null }, metadata: { labels: { x: "y" } } }),
  );
  assert.equal(status, 200);
  assert.deepEqual(body.spec, { colour: "blue" });
  assert.deepEqual(body.metadata.labels, { x: "y" });
  assert.equal(body.metadata.generation, 2);
});

test("a JSON patch is applied whole or not at all", async () => {
  const { server, before } = await serverWithGadget();
  const good = [
    { op: "test", path: "/spec/size", value: 1 },
    { op: "replace", path: "/spec/size", value: 7 },
  ];
  const { body } = await server.ask("patch", "gadgets", patchOf(good, { headers: json }));
  assert.deepEqual(body.spec, { size: 7, colour: "red" });
  const refused = await server.refusal("patch", "gadgets", patchOf(good, { headers: json }));
  assert.equal(refused.code, 422);
  assert.equal(refused.reason, "Invalid");
  const { body: after } = await server.ask("get", "gadgets", { name: "a" });
  assert.deepEqual(after, body);
  assert.notDeepEqual(after, before);
});

test("a strategic patch is for Kubernetes' own kinds only", async () => {
  const { server } = await serverWithGadget();
  const refused = await server.refusal("patch", "gadgets", patchOf({}, { headers: strategic }));
  assert.equal(refused.code, 415);
  assert.equal(
    refused.message,
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json",
  );
  const finalizers = ["berth.dev/a"];
  await server.ask("create", "configmaps", {
    body: { metadata: { name: "a", finalizers }, data: { x: "1" } },
  });
  const { body } = await server.ask(
    "patch",
    "configmaps",
    patchOf(
      { metadata: { finalizers: ["berth.dev/b"] }, data: { y: "2" } },
      { headers: strategic },
    ),
  );
  assert.deepEqual(body.metadata.finalizers?.toSorted(), ["berth.dev/a", "berth.dev/b"]);
  assert.deepEqual(body.data, { x: "1", y: "2" });
});

test("server-side apply is refused in a way that kubectl explains", async () => {
  const { server } = await serverWithGadget();
  const headers = { "content-type": "application/apply-patch+yaml" };
  const refused = await server.refusal(
    "patch",
    "gadgets",
    patchOf(gadget("a"), { headers, query: { fieldManager: "kubectl", force: "true" } }),
  );
  assert.equal(refused.code, 415);
  assert.match(
    refused.message ?? "",
    /^server-side apply is not served yet, use client-side apply/,
  );
});

test("a patch of nothing is refused as not found", async () => {
  const { server } = await serverWithGadget();
  const refused = await server.refusal("patch", "gadgets", { ...patchOf({}), name: "b" });
  assert.equal(refused.code, 404);
});

test("a patch with a resourceVersion locks, one without never conflicts", async () => {
  const { server, before } = await serverWithGadget();
  const { resourceVersion } = before.metadata;
  const answers = await Promise.all(
    [1, 2, 3].map((size) => server.ask("patch", "gadgets", patchOf({ spec: { size: size + 1 } }))),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200],
  );
  const locked = patchOf({ metadata: { resourceVersion }, spec: { size: 9 } });
  const refused = await server.refusal("patch", "gadgets", locked);
  assert.equal(refused.code, 409);
  assert.match(refused.message ?? "", /the object has been modified/);
});

test("a patch that changes nothing writes nothing", async () => {
  const { server, before } = await serverWithGadget();
  const revision = server.store.revision();
  const { body } = await server.ask("patch", "gadgets", patchOf({ spec: { size: 1 } }));
  assert.deepEqual(body, before);
  assert.equal(server.store.revision(), revision);
});

test("a patch of the main object ignores the status, one of the status all else", async () => {
  const { server } = await serverWithGadget();
  const patch = patchOf({ spec: { size: 2 }, status: { phase: "Seen" } });
  const main = await server.ask("patch", "gadgets", patch);
  assert.equal(main.body.status, undefined);
  assert.deepEqual(main.body.spec, { size: 2, colour: "red" });
  const status = await server.ask("patch", "gadgets", {
    ...patchOf({ spec: { size: 3 }, status: { phase: "Seen" } }),
    subresource: "status",
  });
  assert.deepEqual(status.body.status, { phase: "Seen" });
  assert.deepEqual(status.body.spec, { size: 2, colour: "red" });
  assert.equal(status.body.metadata.generation, 2);
});

test("a patch cannot turn an object into another", async () => {
  const { server } = await serverWithGadget();
  const cases: [unknown, number][] = [
    [{ metadata: { name: "b" } }, 400],
    [{ metadata: { namespace: "other" } }, 400],
    [{ metadata: { uid: "x" } }, 422],
    [{ apiVersion: "v2" }, 422],
    [{ kind: "Other" }, 422],
    [{ metadata: null }, 400],
    [{ metadata: { labels: { a: 1 } } }, 422],
    [{ metadata: [] }, 422],
    [{ spec: { size: "big" } }, 422],
  ];
  for (const [patch, code] of cases) {
    const refused = await server.refusal("patch", "gadgets", patchOf(patch));
    assert.equal(refused.code, code, `${JSON.stringify(patch)}: ${refused.message}`);
  }
});

test("what is no patch is refused with 400", async () => {
  const { server } = await serverWithGadget();
  for (const body of ["", "{", "[]", "null", "3"]) {
    const refused = await server.refusal("patch", "gadgets", patchOf(body));
    assert.equal(refused.code, 400, body);
    assert.match(refused.message ?? "", /^error decoding patch: /);
  }
  for (const body of ["{}", "{", '[{"op":"jump","path":"/a"}]', "[1]"]) {
    const refused = await server.refusal("patch", "gadgets", patchOf(body, { headers: json }));
    assert.ok(refused.code === 400 || refused.code === 422, `${body}: ${refused.code}`);
  }
  const nothing = [{ op: "replace", path: "", value: null }];
  const refused = await server.refusal("patch", "gadgets", patchOf(nothing, { headers: json }));
  assert.equal(refused.code, 422);
});

test("strict validation of a patch names the field, and shows nothing of the object", async () => {
  const server = await openServer();
  const body = { metadata: { name: "a" }, stringData: { password: "hunter2" } };
  await server.ask("create", "secrets", { body });
  const refused = await server.refusal("patch", "secrets", {
    ...patchOf({ foo: 1 }),
    query: { fieldValidation: "Strict" },
  });
  assert.equal(refused.code, 422);
  assert.equal(
    refused.message,
    ' "" is invalid: patch: Invalid value: strict decoding error: unknown field "foo"',
  );
  const warned = await server.ask("patch", "secrets", patchOf({ foo: 1 }));
  assert.equal(warned.headers["warning"], '299 - "unknown field \\"foo\\""');
});

test("force is for server-side apply only", async () => {
  const { server } = await serverWithGadget();
  const refused = await server.refusal(
    "patch",
    "gadgets",
    patchOf({}, { query: { force: "true" } }),
  );
  assert.equal(refused.code, 422);
  assert.equal(
    refused.message,
    'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
  );
});

test("a patch that removes the last finalizer of a deleted object removes it", async () => {
  const server = await openServer();
  const body = gadget("a", { metadata: { finalizers: ["berth.dev/x"] } });
  await server.ask("create", "gadgets", { body });
  await server.ask("delete", "gadgets", { name: "a" });
  const { status } = await server.ask(
    "patch",
    "gadgets",
    patchOf({ metadata: { finalizers: null } }),
  );
  assert.equal(status, 200);
  assert.equal((await server.refusal("get", "gadgets", { name: "a" })).code, 404);
});
