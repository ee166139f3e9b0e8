import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { builtinResources } from "../api/builtin/index.ts";
import { berthResources } from "../api/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createMemoryDisk, openStore } from "../store/index.ts";
import { createSchemaRunners } from "./admission/index.ts";
import { createDiscovery } from "./discovery/index.ts";
import { createLogBook, createSeededRandom } from "./fixture.ts";
import type { Listener } from "./index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createRoleAuthorizer,
  createUserAuthenticator,
  createUserSecret,
  listen,
} from "./index.ts";
import { createOpenApi } from "./openapi/index.ts";
import { createAuthority, issueServerCertificate, localNames } from "./pki/index.ts";
import { createResourceHandler } from "./resources/index.ts";

/** The real parts together on the memory store: objects through HTTPS, as a client sees them. */

// Node judges certificates by its own clock, so these have to be of today.
const clock = new VirtualClock(performance.timeOrigin);
const random = createSeededRandom(11);
const { log, lines } = createLogBook();
const authority = await createAuthority({ clock, random });
const admin = createUserSecret({ name: "ada", role: "admin" }, { random });
const viewer = createUserSecret({ name: "vic", role: "view" }, { random });
const agent = new Agent({ keepAlive: true, ca: authority.cert });
let listener: Listener;

before(async () => {
  const store = await openStore({ journal: createMemoryDisk().open(), clock });
  const catalogue = createCatalogue([...builtinResources, ...berthResources], { serveAll: true });
  const environment = { store, catalogue, clock, random, runnerOf: createSchemaRunners() };
  const server = createApiServer({
    ...environment,
    resources: createResourceHandler(environment),
    discovery: createDiscovery(catalogue),
    openApi: createOpenApi(catalogue),
    authenticators: [createUserAuthenticator(store)],
    authorizer: createRoleAuthorizer(),
    health: () => [{ name: "store" }],
    version: "0.1.0",
    log,
  });
  for (const name of ["berth-system", "default"]) {
    await inProcess("/api/v1/namespaces", {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    });
  }
  for (const { secret } of [admin, viewer]) {
    await inProcess("/api/v1/namespaces/berth-system/secrets", secret);
  }
  const tls = await issueServerCertificate(authority, localNames, { clock, random });
  listener = await listen({ server, tls, host: "127.0.0.1", port: 0, clock, log });

  async function inProcess(url: string, object: KubeObject): Promise<void> {
    const headers = { "content-type": "application/json" };
    const body = Buffer.from(JSON.stringify(object));
    const response = await server.handleAs(controllersUser, { method: "POST", url, headers, body });
    assert.equal(response.status, 201, url);
  }
});

after(async () => {
  agent.destroy();
  const closed = listener.close(1_000);
  clock.advance(1_000);
  await closed;
});

interface Answer {
  readonly status: number;
  readonly body: { readonly [field: string]: unknown } & Partial<KubeObject>;
}

function open(method: string, path: string, token: string): ClientRequest {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return httpsRequest({ port: listener.port, host: "127.0.0.1", agent, method, path, headers });
}

async function call(line: string, body?: unknown, token = admin.token): Promise<Answer> {
  const [method = "", path = ""] = line.split(" ");
  const request = open(method, path, token);
  request.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) };
}

/** The events of a watch, one after the other. */
async function* watch(path: string): AsyncGenerator<{ type: string; object: KubeObject }> {
  const request = open("GET", path, admin.token);
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let rest = "";
  for await (const chunk of response) {
    const complete = `${rest}${String(chunk)}`.split("\n");
    rest = complete.pop() ?? "";
    for (const line of complete) yield JSON.parse(line);
  }
}

const classes = "/apis/berth.dev/v1alpha1/namespaces/default/vmclasses";
const web = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VMClass",
  metadata: { name: "web" },
  spec: { cpu: { cores: 2 }, memory: { size: "2Gi" } },
};

test("an object is created, read, listed, watched, changed and deleted", async () => {
  const created = await call(`POST ${classes}`, web);
  assert.equal(created.status, 201, JSON.stringify(created.body));
  const { uid, resourceVersion = "" } = created.body.metadata ?? {};
  assert.ok(uid);

  const got = await call(`GET ${classes}/web`);
  assert.equal(got.body.metadata?.uid, uid);
  const list = await call(`GET ${classes}`);
  assert.equal((list.body["items"] as unknown[]).length, 1);
  assert.equal((await call(`POST ${classes}`, web)).status, 409);

  const events = watch(`${classes}?watch=true&resourceVersion=${resourceVersion}`);
  const changed = events.next();
  const labels = { tier: "front" };
  const current = { ...got.body, metadata: { ...got.body.metadata, labels } };
  assert.equal((await call(`PUT ${classes}/web`, current)).status, 200);
  const first = (await changed).value;
  assert.equal(first?.type, "MODIFIED");
  assert.deepEqual(first?.object.metadata.labels, labels);

  assert.equal((await call(`DELETE ${classes}/web`)).status, 200);
  assert.equal((await events.next()).value?.type, "DELETED");
  await events.return(undefined);
  assert.equal((await call(`GET ${classes}/web`)).status, 404);
});

test("what the schema does not allow is refused in one Status", async () => {
  const answer = await call(`POST ${classes}?fieldValidation=Strict`, {
    ...web,
    spec: { ...web.spec, typo: 1 },
  });
  assert.equal(answer.status, 400);
  assert.equal(answer.body.kind, "Status");
  assert.match(String(answer.body["message"]), /unknown field "spec\.typo"/);
});

test("a viewer reads, does not write, and sees no secret", async () => {
  assert.equal((await call(`GET ${classes}`, undefined, viewer.token)).status, 200);
  const write = await call(`POST ${classes}`, web, viewer.token);
  assert.equal(write.status, 403);
  assert.match(String(write.body["message"]), /^vmclasses\.berth\.dev is forbidden: User "vic"/);
  const users = "/api/v1/namespaces/berth-system/secrets";
  assert.equal((await call(`GET ${users}`, undefined, viewer.token)).status, 403);
  assert.equal((await call("GET /api/v1/secrets", undefined, viewer.token)).status, 403);
});

test("a token is dead once its user was removed, and a new user's lives at once", async () => {
  const guest = createUserSecret({ name: "guest", role: "view" }, { random });
  const secrets = "/api/v1/namespaces/berth-system/secrets";
  assert.equal((await call(`GET ${classes}`, undefined, guest.token)).status, 401);
  assert.equal((await call(`POST ${secrets}`, guest.secret)).status, 201);
  assert.equal((await call(`GET ${classes}`, undefined, guest.token)).status, 200);
  assert.equal((await call(`DELETE ${secrets}/user-guest`)).status, 200);
  assert.equal((await call(`GET ${classes}`, undefined, guest.token)).status, 401);
});

test("discovery and OpenAPI tell what is served", async () => {
  const groups = await call("GET /apis");
  const names = (groups.body["groups"] as { name: string }[]).map((group) => group.name);
  assert.ok(names.includes("berth.dev") && names.includes("authorization.k8s.io"));
  const openApi = await call("GET /openapi/v3");
  assert.ok(Object.hasOwn(Object(openApi.body["paths"]), "apis/berth.dev/v1alpha1"));
  const document = await call("GET /openapi/v3/apis/berth.dev/v1alpha1");
  assert.equal(document.status, 200);
});

test("whoami names the user behind the token", async () => {
  const url = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const { status, body } = await call(`POST ${url}`, { kind: "SelfSubjectReview" });
  assert.equal(status, 201);
  assert.match(JSON.stringify(body), /"username":"ada"/);
});

test("nothing of all this was an internal error", () => {
  assert.deepEqual(
    lines.filter((line) => line.level === "error"),
    [],
  );
});
