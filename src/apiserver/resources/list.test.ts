import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { KubeList } from "../../kernel/object.ts";
import type { Status } from "../../kernel/status.ts";
import { gadget, gadgetResource, openServer, type Ask, type TestServer } from "./testing/server.ts";

async function serverWith(names: readonly string[], options = {}): Promise<TestServer> {
  const server = await openServer(options);
  for (const name of names) {
    const metadata = { labels: { first: name[0] ?? "" } };
    const { status } = await server.ask("create", "gadgets", { body: gadget(name, { metadata }) });
    assert.equal(status, 201);
  }
  return server;
}

async function list(server: TestServer, what: Ask = {}): Promise<KubeList> {
  const answer = await server.ask<KubeList>("list", "gadgets", what);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

const namesOf = (found: KubeList): (string | undefined)[] =>
  found.items.map(({ metadata }) => metadata.name);

test("a list has every object of its namespace, as it is stored, and the revision", async () => {
  const server = await serverWith(["b", "a"]);
  await server.ask("create", "gadgets", { namespace: "other", body: gadget("c") });
  const found = await list(server);
  assert.equal(found.kind, "GadgetList");
  assert.equal(found.apiVersion, "berth.dev/v1");
  assert.deepEqual(found.metadata, { resourceVersion: String(server.store.revision()) });
  assert.deepEqual(namesOf(found), ["a", "b"]);
  const { body: one } = await server.ask("get", "gadgets", { name: "a" });
  assert.deepEqual(found.items[0], one);
  assert.deepEqual(namesOf(await list(server, { namespace: undefined })), ["a", "b", "c"]);
  assert.deepEqual((await list(server, { namespace: "empty" })).items, []);
});

test("pages are all of the first page's revision and leave nothing out", async () => {
  const server = await serverWith(["a", "b", "c", "d", "e"]);
  const first = await list(server, { query: { limit: "2" } });
  assert.deepEqual(namesOf(first), ["a", "b"]);
  assert.equal(first.metadata.remainingItemCount, 3);
  const token = JSON.parse(Buffer.from(first.metadata.continue ?? "", "base64url").toString());
  const rv = Number(first.metadata.resourceVersion);
  assert.deepEqual(token, { v: "meta.k8s.io/v1", rv, start: "b\0" });
  await server.ask("delete", "gadgets", { name: "c" });
  await server.ask("create", "gadgets", { body: gadget("bb") });
  const query = { limit: "2", continue: first.metadata.continue ?? "" };
  const second = await list(server, { query });
  assert.deepEqual(namesOf(second), ["c", "d"]);
  assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
  assert.equal(second.metadata.remainingItemCount, 1);
  const third = await list(server, { query: { continue: second.metadata.continue ?? "" } });
  assert.deepEqual(namesOf(third), ["e"]);
  assert.equal(third.metadata.continue, undefined);
  assert.equal(third.metadata.remainingItemCount, undefined);
});

test("pages over all namespaces go on in the right one", async () => {
  const server = await serverWith(["a", "b"]);
  await server.ask("create", "gadgets", { namespace: "other", body: gadget("a") });
  const first = await list(server, { namespace: undefined, query: { limit: "2" } });
  const query = { limit: "2", continue: first.metadata.continue ?? "" };
  const second = await list(server, { namespace: undefined, query });
  assert.deepEqual(
    second.items.map(({ metadata }) => metadata.namespace),
    ["other"],
  );
});

test("pages with a selector are full, and do not pretend to know the rest", async () => {
  const server = await serverWith(["a1", "a2", "b1", "a3", "b2"]);
  const query = { limit: "2", labelSelector: "first=a" };
  const first = await list(server, { query });
  assert.deepEqual(namesOf(first), ["a1", "a2"]);
  assert.equal(first.metadata.remainingItemCount, undefined);
  const rest = await list(server, { query: { ...query, continue: first.metadata.continue ?? "" } });
  assert.deepEqual(namesOf(rest), ["a3"]);
  assert.equal(rest.metadata.continue, undefined);
});

test("a page that is too old says so, and how to go on without it", async () => {
  const server = await serverWith(["a", "b", "c"], { storeLimits: { historyMs: 1000 } });
  const first = await list(server, { query: { limit: "1" } });
  await server.ask("create", "gadgets", { body: gadget("d") });
  server.clock.advance(60_000);
  await server.store.compact(server.clock.nowMs());
  const query = { limit: "5", continue: first.metadata.continue ?? "" };
  const { status, body } = await server.ask<Status & { metadata: { continue: string } }>(
    "list",
    "gadgets",
    { query },
  );
  assert.equal(status, 410);
  assert.equal(body.reason, "Expired");
  assert.match(body.message ?? "", /^The provided continue parameter is too old to display/);
  const goOn = await list(server, { query: { continue: body.metadata.continue } });
  assert.deepEqual(namesOf(goOn), ["b", "c", "d"]);
  assert.equal(goOn.metadata.resourceVersion, String(server.store.revision()));
});

test("a continue token that nobody made is refused", async () => {
  const server = await serverWith([]);
  const tokens = [
    "x",
    "e30",
    Buffer.from('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}').toString("base64url"),
  ];
  for (const token of tokens) {
    const refused = await server.refusal("list", "gadgets", { query: { continue: token } });
    assert.equal(refused.code, 400);
    assert.match(refused.message ?? "", /^invalid continue token: continue key is not valid/);
  }
  const good = Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"a\\u0000"}').toString(
    "base64url",
  );
  const both = await server.refusal("list", "gadgets", {
    query: { continue: good, resourceVersion: "1" },
  });
  assert.equal(both.message, "specifying resource version is not allowed when using continue");
});

test("the revision of a list is at least, exactly, or whatever there is", async () => {
  const server = await serverWith(["a", "b"]);
  const { resourceVersion = "" } = (await list(server)).metadata;
  await server.ask("delete", "gadgets", { name: "a" });
  const newest = String(server.store.revision());
  const at = async (query: Record<string, string>): Promise<string> => {
    const found = await list(server, { query });
    return `${namesOf(found).join()}@${found.metadata.resourceVersion}`;
  };
  assert.equal(await at({ resourceVersion }), `b@${newest}`);
  assert.equal(await at({ resourceVersion: "0" }), `b@${newest}`);
  assert.equal(await at({ resourceVersion, resourceVersionMatch: "NotOlderThan" }), `b@${newest}`);
  const exact = { resourceVersion, resourceVersionMatch: "Exact" };
  assert.equal(await at(exact), `a,b@${resourceVersion}`);
  assert.equal(await at({ resourceVersion, limit: "5" }), `a,b@${resourceVersion}`);
});

test("a revision that is still to come is a timeout with its cause", async () => {
  const server = await serverWith([]);
  const refused = await server.refusal("list", "gadgets", { query: { resourceVersion: "999" } });
  assert.equal(refused.code, 504);
  assert.equal(refused.reason, "Timeout");
  assert.equal(refused.message, "Timeout: Too large resource version: 999, current: 2");
  assert.deepEqual(refused.details, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
  const get = await server.refusal("get", "gadgets", { name: "a", query: "resourceVersion=999" });
  assert.equal(get.code, 504);
});

test("an exact revision that is forgotten is expired", async () => {
  const server = await serverWith(["a", "b"], { storeLimits: { historyMs: 1000 } });
  server.clock.advance(60_000);
  await server.store.compact(server.clock.nowMs());
  const query = { resourceVersion: "1", resourceVersionMatch: "Exact" };
  const refused = await server.refusal("list", "gadgets", { query });
  assert.equal(refused.code, 410);
  assert.equal(refused.message, "The resourceVersion for the provided list is too old.");
});

test("options of lists that contradict each other are refused in Kubernetes' words", async () => {
  const server = await serverWith([]);
  const cases: [string, number, RegExp][] = [
    [
      "resourceVersionMatch=Exact",
      422,
      /^ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided$/,
    ],
    [
      "resourceVersion=0&resourceVersionMatch=Exact",
      422,
      /"exact" is forbidden for resourceVersion "0"$/,
    ],
    ["resourceVersion=1&resourceVersionMatch=Some", 422, /Unsupported value: "Some"/],
    [
      "resourceVersion=1&resourceVersionMatch=Exact&continue=x",
      422,
      /forbidden when continue is provided$/,
    ],
    ["sendInitialEvents=true", 422, /sendInitialEvents is forbidden for list$/],
    [
      "resourceVersion=abc",
      400,
      /^invalid resource version: strconv.ParseUint: parsing "abc": invalid syntax$/,
    ],
    ["limit=many", 400, /^strconv.ParseInt: parsing "many": invalid syntax$/],
    ["labelSelector=a%3D%3D%3Db", 400, /unable to parse requirement/],
    ["fieldSelector=spec.size%3D1", 400, /^field label not supported: spec.size$/],
    ["fieldSelector=x", 400, /^invalid selector: 'x'; can't understand 'x'$/],
  ];
  for (const [query, code, message] of cases) {
    const refused = await server.refusal("list", "gadgets", { query });
    assert.equal(refused.code, code, query);
    assert.match(refused.message ?? "", message);
  }
});

test("selectors by label and field pick what they say", async () => {
  const server = await serverWith(["a1", "a2", "b1"]);
  const by = async (query: Record<string, string>) => namesOf(await list(server, { query }));
  assert.deepEqual(await by({ labelSelector: "first=b" }), ["b1"]);
  assert.deepEqual(await by({ labelSelector: "first in (a)" }), ["a1", "a2"]);
  assert.deepEqual(await by({ fieldSelector: "metadata.name=a2" }), ["a2"]);
  assert.deepEqual(await by({ fieldSelector: "metadata.name=a" }), []);
  assert.deepEqual(await by({ fieldSelector: "metadata.name!=a2" }), ["a1", "b1"]);
  const both = { fieldSelector: "metadata.name=a1", labelSelector: "first=b" };
  assert.deepEqual(await by(both), []);
  const query = { fieldSelector: "metadata.name=a1,metadata.namespace=default" };
  assert.deepEqual(namesOf(await list(server, { namespace: undefined, query })), ["a1"]);
});

test("no query, whatever it is, brings anything but an answer", async () => {
  const server = await serverWith(["a", "b"]);
  const names = [
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "includeObject",
    "pretty",
    "dryRun",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
  ];
  const values = fc.oneof(
    fc.string(),
    fc.integer().map(String),
    fc.constantFrom("true", "0", "Exact", "NotOlderThan", "metadata.name=a", "first in (a)"),
  );
  const queries = fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 4 });
  const verbs = fc.constantFrom("list", "watch", "get", "deletecollection");
  const accepts = fc.oneof(
    fc.string(),
    fc.constantFrom("application/json;as=Table;v=v1;g=meta.k8s.io", "application/yaml"),
  );
  await fc.assert(
    fc.asyncProperty(queries, verbs, accepts, async (query, verb, accept) => {
      const what = { query: { ...query, dryRun: "All" }, headers: { accept } };
      // An ApiError becomes an answer; anything else that is thrown fails here.
      if (verb === "watch") await server.tryWatch("gadgets", what);
      else await server.ask(verb, "gadgets", verb === "get" ? { ...what, name: "a" } : what);
    }),
    { numRuns: 500 },
  );
  server.handler.close();
  assert.equal(server.clock.timers, 0);
});

test("ten thousand objects are listed without parsing or copying one", async () => {
  const server = await openServer();
  const parts = Array.from({ length: 50 }, (_, at) => `part-${at}-${"x".repeat(28)}`);
  const bytes = Buffer.from(JSON.stringify(gadget("a", { spec: { parts } })));
  const writes = Array.from({ length: 10_000 }, (_, at) =>
    server.store.write({ bucket: "berth.dev/gadgets", id: `default/g${at}` }, () => ({
      do: "put",
      encode: () => bytes,
    })),
  );
  await Promise.all(writes);
  const parse = JSON.parse;
  let parsed = 0;
  JSON.parse = (...given): unknown => {
    parsed++;
    return parse(...given);
  };
  const answer = await server.handler.handle({
    verb: "list",
    resource: gadgetResource,
    namespace: "default",
    name: undefined,
    subresource: undefined,
    query: new URLSearchParams(),
    headers: {},
    body: new Uint8Array(),
    user: { name: "tester", uid: "", groups: [] },
  });
  JSON.parse = parse;
  assert.equal(parsed, 0);
  assert.ok(Array.isArray(answer.body));
  const stored = server.store.get({ bucket: "berth.dev/gadgets", id: "default/g7" })?.value;
  assert.ok(stored && answer.body.includes(stored), "the stored bytes themselves are sent");
});
