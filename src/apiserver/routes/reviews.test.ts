import assert from "node:assert/strict";
import { test } from "node:test";
import type { WireResponse } from "../../kernel/wire.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createRoleAuthorizer } from "../authorization/index.ts";
import { createCatalogue } from "../catalogue.ts";
import type { User } from "../contract.ts";
import {
  bodyJson,
  createEchoHandler,
  createLogBook,
  createSeededRandom,
  sampleResources,
  wireRequest,
  withBody,
} from "../fixture.ts";
import { createApiServer } from "../server.ts";

const server = createApiServer({
  catalogue: createCatalogue(sampleResources),
  resources: createEchoHandler(),
  discovery: () => undefined,
  openApi: () => undefined,
  authenticators: [],
  authorizer: createRoleAuthorizer(),
  health: () => [],
  metrics: { contentType: "text/plain", text: async () => "" },
  version: "0.1.0",
  clock: new VirtualClock(),
  random: createSeededRandom(),
  log: createLogBook().log,
});

const authorization = "/apis/authorization.k8s.io/v1";
const access = `${authorization}/selfsubjectaccessreviews`;
const whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

function userOf(...groups: string[]): User {
  return { name: "ada", uid: "u-1", groups };
}

function post(url: string, body: unknown, user = userOf("berth:edit")): Promise<WireResponse> {
  return server.handleAs(user, withBody(wireRequest("POST", url), body));
}

async function canI(attributes: object, user?: User): Promise<unknown> {
  const response = await post(access, { spec: { resourceAttributes: attributes } }, user);
  assert.equal(response.status, 201);
  return (bodyJson(response)["status"] as Record<string, unknown>)["allowed"];
}

test("whoami tells the user's name, uid and groups", async () => {
  const response = await post(whoami, { kind: "SelfSubjectReview" });
  assert.equal(response.status, 201);
  assert.deepEqual(bodyJson(response), {
    kind: "SelfSubjectReview",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { creationTimestamp: null },
    status: { userInfo: { username: "ada", uid: "u-1", groups: ["berth:edit"] } },
  });
});

test("kubectl 1.27 asks who it is under an older version, and is answered under that", async () => {
  const older = whoami.replace("/v1/", "/v1beta1/");
  const review = { kind: "SelfSubjectReview", apiVersion: "authentication.k8s.io/v1beta1" };
  const response = await post(older, review);
  assert.equal(response.status, 201);
  assert.equal(bodyJson(response)["apiVersion"], "authentication.k8s.io/v1beta1");
});

test("can-i answers as the authorizer would", async () => {
  const vms = { group: "berth.dev", resource: "virtualmachines", namespace: "default" };
  assert.equal(await canI({ ...vms, verb: "create" }), true);
  assert.equal(await canI({ ...vms, verb: "create" }, userOf("berth:view")), false);
  assert.equal(await canI({ ...vms, verb: "update", subresource: "status" }), false);
  assert.equal(await canI({ resource: "secrets", verb: "list" }), false);
  assert.equal(await canI({ verb: "*", group: "*", resource: "*" }), false);
  assert.equal(await canI({ verb: "*", group: "*", resource: "*" }, userOf("berth:admin")), true);
});

test("the namespace that kubectl adds to a kind without one does not open it", async () => {
  const asked = { group: "berth.dev", resource: "hypervisors", namespace: "default" };
  assert.equal(await canI({ ...asked, verb: "create" }), false);
  assert.equal(await canI({ ...asked, verb: "list" }), true);
});

test("a refusal that can be helped says how", async () => {
  const spec = { resourceAttributes: { resource: "secrets", verb: "list" } };
  const review = bodyJson(await post(access, { spec }));
  assert.deepEqual(review["status"], {
    allowed: false,
    reason: "not every namespace is open to this user, so name one (-n)",
  });
  assert.deepEqual(review["spec"], spec);
});

test("paths of documents and probes are open to users, and others are not", async () => {
  const ask = async (path: string, verb = "get", user?: User): Promise<unknown> => {
    const spec = { nonResourceAttributes: { path, verb } };
    const response = await post(access, { spec }, user);
    return (bodyJson(response)["status"] as Record<string, unknown>)["allowed"];
  };
  assert.equal(await ask("/healthz"), true);
  assert.equal(await ask("/apis/berth.dev"), true);
  assert.equal(await ask("/healthz", "post"), false);
  assert.equal(await ask("/nope"), false);
  assert.equal(await ask("/metrics"), true);
  assert.equal(await ask("/metrics", "get", userOf("berth:edit:team-a")), false);
});

test("can-i --list tells what a user may do with every kind", async () => {
  const response = await post(
    `${authorization}/selfsubjectrulesreviews`,
    { spec: { namespace: "default" } },
    userOf("berth:view"),
  );
  const status = bodyJson(response)["status"] as { resourceRules: Rule[]; incomplete: boolean };
  interface Rule {
    verbs: string[];
    resources: string[];
  }
  const rules = new Map(status.resourceRules.map((rule) => [rule.resources[0], rule.verbs]));
  assert.deepEqual(rules.get("virtualmachines"), ["get", "list", "watch"]);
  assert.deepEqual(rules.get("vmsets/scale"), ["get"]);
  assert.equal(rules.has("secrets"), false);
  assert.equal(status.incomplete, false);
});

test("a protobuf body is read as kubectl 1.32 sends it", async () => {
  const request = wireRequest("POST", access);
  const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
  const answer = await server.handleAs(userOf("berth:edit"), {
    ...request,
    headers,
    body: accessReviewProtobuf("list", "berth.dev", "virtualmachines"),
  });
  assert.equal(answer.status, 201);
  const review = bodyJson(answer);
  assert.deepEqual(review["spec"], {
    resourceAttributes: { verb: "list", group: "berth.dev", resource: "virtualmachines" },
  });
  assert.equal((review["status"] as Record<string, unknown>)["allowed"], true);
});

/** The bytes of a SelfSubjectAccessReview: "k8s\0", Unknown{typeMeta, raw}, the message. */
function accessReviewProtobuf(verb: string, group: string, resource: string): Uint8Array {
  const attributes = [field(2, verb), field(3, group), field(5, resource)];
  const spec = field(1, Buffer.concat(attributes));
  const typeMeta = [field(1, "authorization.k8s.io/v1"), field(2, "SelfSubjectAccessReview")];
  const unknown = [field(1, Buffer.concat(typeMeta)), field(2, field(2, spec))];
  return Buffer.concat([Buffer.from("k8s\0"), ...unknown]);
}

function field(number: number, value: string | Uint8Array): Buffer {
  const bytes = Buffer.from(value);
  assert.ok(bytes.length < 128, "one byte is enough for the length");
  return Buffer.concat([Buffer.of((number << 3) | 2, bytes.length), bytes]);
}

const badBodies: Record<string, Uint8Array> = {
  "nothing at all": Buffer.from(""),
  "no JSON": Buffer.from("{"),
  "a list": Buffer.from("[]"),
  "another kind": Buffer.from('{"kind":"Pod"}'),
  "another version": Buffer.from('{"apiVersion":"authorization.k8s.io/v2"}'),
  "no question": Buffer.from('{"spec":{}}'),
  "two questions": Buffer.from('{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}'),
};

for (const [what, body] of Object.entries(badBodies)) {
  test(`a review with ${what} is a bad request`, async () => {
    assert.equal((await post(access, body)).status, 400);
  });
}

test("a review that is nested without end is answered all the same", async () => {
  const deep = `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`;
  const body = `{"spec":{"resourceAttributes":{"verb":"get","extra":${deep}},"more":${deep}}}`;
  assert.equal((await post(access, Buffer.from(body))).status, 201);
});

test("a body of a type that nobody sends is refused by its type", async () => {
  const request = { ...wireRequest("POST", access), headers: { "content-type": "text/plain" } };
  assert.equal((await server.handleAs(userOf(), request)).status, 415);
});
