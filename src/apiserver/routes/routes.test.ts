import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../kernel/status.ts";
import type { WireRequest } from "../../kernel/wire.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { StoreError } from "../../store/index.ts";
import { controllersUser, createRoleAuthorizer } from "../authorization/index.ts";
import { createCatalogue } from "../catalogue.ts";
import type { ResourceRequest, User } from "../contract.ts";
import {
  bodyJson,
  bodyText,
  createEchoHandler,
  createLogBook,
  createSeededRandom,
  sampleResources,
  wireRequest,
  withBody,
} from "../fixture.ts";
import type { ApiServer, ApiServerOptions } from "../server.ts";
import { createApiServer } from "../server.ts";

const root: User = { name: "root", uid: "1", groups: ["berth:admin", "system:authenticated"] };
const viewer: User = { name: "vic", uid: "2", groups: ["berth:view", "system:authenticated"] };

function serverWith(changes: Partial<ApiServerOptions> = {}): ApiServer {
  return createApiServer({
    catalogue: createCatalogue(sampleResources),
    resources: createEchoHandler(),
    discovery: () => undefined,
    openApi: () => undefined,
    authenticators: [{ authenticate: (token) => ({ root, viewer })[token] }],
    authorizer: createRoleAuthorizer(),
    health: () => [],
    version: "0.1.0",
    clock: new VirtualClock(),
    random: createSeededRandom(),
    log: createLogBook().log,
    ...changes,
  });
}

/** Lets the handler throw. */
function serverThatThrows(error: unknown, changes: Partial<ApiServerOptions> = {}): ApiServer {
  const handle = async (): Promise<never> => {
    throw error;
  };
  return serverWith({ resources: { handle, close: () => {} }, ...changes });
}

const vms = "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines";

const verbs: Record<string, string> = {
  [`GET ${vms}`]: "list",
  [`GET ${vms}?watch=true`]: "watch",
  [`GET ${vms}?watch=1&resourceVersion=5`]: "watch",
  [`GET ${vms}?watch=false`]: "list",
  [`GET ${vms}/web`]: "get",
  [`GET ${vms}/web?watch=true`]: "get",
  [`POST ${vms}`]: "create",
  [`PUT ${vms}/web`]: "update",
  [`PATCH ${vms}/web`]: "patch",
  [`PATCH ${vms}/web/status`]: "patch",
  [`DELETE ${vms}/web`]: "delete",
  [`DELETE ${vms}`]: "deletecollection",
  "GET /apis/berth.dev/v1alpha1/virtualmachines": "list",
  "GET /api/v1/namespaces": "list",
  "GET /api/v1/namespaces/default": "get",
  "DELETE /api/v1/namespaces/default": "delete",
  "GET /api/v1/namespaces/default/status": "get",
};

for (const [line, verb] of Object.entries(verbs)) {
  test(`${line} is a ${verb}`, async () => {
    const [method = "", url = ""] = line.split(" ");
    const response = await serverWith().handle(wireRequest(method, url, "root"));
    assert.equal(response.status, 200);
    assert.equal(bodyJson(response)["verb"], verb);
  });
}

test("the handler is told where and what, and which part of it", async () => {
  const resources = createEchoHandler();
  const server = serverWith({ resources });
  const ask = async (url: string): Promise<Partial<ResourceRequest> | undefined> => {
    await server.handle(wireRequest("GET", url, "root"));
    const { namespace, name, subresource, user } = resources.requests.pop() ?? {};
    return { namespace, name, subresource, user } as Partial<ResourceRequest>;
  };
  const user = root;
  assert.deepEqual(await ask(`${vms}/web/status`), {
    namespace: "default",
    name: "web",
    subresource: "status",
    user,
  });
  assert.deepEqual(await ask("/api/v1/namespaces/default"), {
    namespace: undefined,
    name: "default",
    subresource: undefined,
    user,
  });
  assert.deepEqual(await ask("/api/v1/namespaces/default/status"), {
    namespace: undefined,
    name: "default",
    subresource: "status",
    user,
  });
  assert.deepEqual(await ask("/apis/berth.dev/v1alpha1/virtualmachines"), {
    namespace: undefined,
    name: undefined,
    subresource: undefined,
    user,
  });
});

test("a refused list of one name is refused by that name", async () => {
  const url = "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Dtls";
  const response = await serverWith().handle(wireRequest("GET", url, "viewer"));
  assert.equal(response.status, 403);
  assert.equal(
    bodyJson(response)["message"],
    'secrets "tls" is forbidden: User "vic" cannot list resource "secrets" in API group "" ' +
      'in the namespace "default"',
  );
});

test("a refusal of the handler is passed on as a Status, with its hint when to try again", async () => {
  const error = new ApiError(429, "TooManyRequests", "slow down", { retryAfterSeconds: 3 });
  const response = await serverThatThrows(error).handle(wireRequest("GET", vms, "root"));
  assert.equal(response.status, 429);
  assert.equal(response.headers["retry-after"], "3");
  assert.deepEqual(bodyJson(response), {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: "slow down",
    reason: "TooManyRequests",
    details: { retryAfterSeconds: 3 },
    code: 429,
  });
});

test("anything else that is thrown is a 500 with a reference that the log has too", async () => {
  const { log, lines } = createLogBook();
  const server = serverThatThrows(new TypeError("x is not a function"), { log });
  const response = await server.handle(wireRequest("POST", `${vms}?dryRun=All`, "root"));
  assert.equal(response.status, 500);
  const message = String(bodyJson(response)["message"]);
  const reference = /^Internal error occurred: .* under ([0-9a-f]{12})$/.exec(message)?.[1];
  assert.ok(reference, message);
  assert.equal(message.includes("not a function"), false);
  const [line] = lines;
  assert.equal(line?.fields["reference"], reference);
  assert.equal(line?.fields["error"], "TypeError: x is not a function");
  assert.equal(line?.fields["path"], vms);
});

test("what a client sent does not reach the log, even through the engine's own words", async () => {
  const { log, lines } = createLogBook();
  let complaint: unknown;
  try {
    JSON.parse('{"password": hunter2');
  } catch (error) {
    complaint = error;
  }
  assert.match(String(complaint), /hunter2|hun/);
  const request = withBody(wireRequest("POST", vms, "root"), Buffer.from('{"password": hunter2'));
  assert.equal((await serverThatThrows(complaint, { log }).handle(request)).status, 500);
  const logged = JSON.stringify(lines);
  assert.equal(logged.includes("hun"), false);
  assert.equal(logged.includes("Bearer"), false);
  for (const strange of [undefined, null, "hunter2", { hunter2: 1 }]) {
    assert.equal((await serverThatThrows(strange, { log }).handle(request)).status, 500);
  }
  assert.equal(JSON.stringify(lines).includes("hunter2"), false);
});

test("what the store refuses is said in words of its own, and logged once a minute", async () => {
  const { log, lines } = createLogBook();
  const codes = { StorageFull: 507, StorageFailed: 500, Overloaded: 429, Closed: 503 } as const;
  for (const [code, status] of Object.entries(codes)) {
    const error = new StoreError(code as keyof typeof codes, "disk /dev/secret");
    const server = serverThatThrows(error, { log });
    const responses = [
      await server.handle(wireRequest("POST", vms, "root")),
      await server.handle(wireRequest("POST", vms, "root")),
    ];
    assert.deepEqual(
      responses.map((response) => response.status),
      [status, status],
    );
    assert.equal(
      responses.some((response) => bodyText(response).includes("/dev")),
      false,
    );
  }
  assert.deepEqual(
    lines.map((line) => line.fields["code"]),
    Object.keys(codes),
  );
});

test("requests without valid credentials are logged once a minute and peer", async () => {
  const { log, lines } = createLogBook();
  const clock = new VirtualClock();
  const server = serverWith({ log, clock });
  const knock = (peer: string): Promise<unknown> => {
    return server.handle(wireRequest("GET", "/api", "wrong"), { remoteAddress: peer });
  };
  for (let i = 0; i < 5; i += 1) await knock("10.0.0.1");
  await knock("10.0.0.2");
  assert.deepEqual(
    lines.map((line) => line.fields["peer"]),
    ["10.0.0.1", "10.0.0.2"],
  );
  clock.advance(60_000);
  await knock("10.0.0.1");
  assert.equal(lines.length, 3);
  assert.equal(JSON.stringify(lines).includes("wrong"), false);
});

test("a wrong token is told apart from none, and both are told how to answer", async () => {
  const wrong = await serverWith().handle(wireRequest("GET", "/api", "wrong"));
  const none = await serverWith().handle(wireRequest("GET", "/api"));
  assert.match(String(bodyJson(wrong)["message"]), /^Unauthorized: the token is not valid here/);
  assert.equal(bodyJson(none)["message"], "Unauthorized");
  assert.equal(none.headers["www-authenticate"], 'Bearer realm="berth"');
});

test("the controllers in process need no token, and are authorized like everybody", async () => {
  const server = serverWith();
  const status = wireRequest("PATCH", `${vms}/web/status`);
  assert.equal((await server.handleAs(controllersUser, status)).status, 200);
  assert.equal((await server.handleAs(viewer, status)).status, 403);
});

test("nobody acts as somebody else, and nobody acts as themselves when they meant to", async () => {
  for (const header of ["impersonate-user", "impersonate-group", "impersonate-uid"]) {
    const request = wireRequest("GET", vms, "root");
    const headers = { ...request.headers, [header]: "vic" };
    const response = await serverWith().handle({ ...request, headers });
    assert.equal(response.status, 403, header);
    assert.match(String(bodyJson(response)["message"]), /cannot impersonate resource "users"/);
  }
});

test("headers are known or not before anything is read", () => {
  const server = serverWith();
  assert.equal(server.knows({ authorization: "Bearer root" }), true);
  assert.equal(server.knows({ authorization: "Bearer wrong" }), false);
  assert.equal(server.knows({}), false);
});

test("closing the server ends the watches", () => {
  let isClosed = false;
  const resources = { ...createEchoHandler(), close: () => void (isClosed = true) };
  serverWith({ resources }).close();
  assert.equal(isClosed, true);
});

test("probes say ok, and with ?verbose what was looked at", async () => {
  const server = serverWith({ health: () => [{ name: "store" }] });
  for (const probe of ["livez", "healthz", "readyz"]) {
    const response = await server.handle(wireRequest("GET", `/${probe}`));
    assert.equal(response.status, 200);
    assert.equal(bodyText(response), "ok");
  }
  const verbose = await server.handle(wireRequest("GET", "/readyz?verbose"));
  assert.equal(bodyText(verbose), "[+]ping ok\n[+]store ok\nreadyz check passed\n");
});

test("while a check fails the server is alive but not ready, and says why", async () => {
  const failure = "the disk is full";
  const server = serverWith({ health: () => [{ name: "store", failure }, { name: "start" }] });
  const ready = await server.handle(wireRequest("GET", "/readyz"));
  assert.equal(ready.status, 503);
  assert.equal(bodyText(ready), "[-]store failed: the disk is full\nreadyz check failed\n");
  assert.equal((await server.handle(wireRequest("GET", "/healthz"))).status, 503);
  assert.equal((await server.handle(wireRequest("GET", "/livez"))).status, 200);
});

test("the version is one that kubectl can compare, and names the build", async () => {
  const version = bodyJson(await serverWith().handle(wireRequest("GET", "/version")));
  assert.match(String(version["gitVersion"]), /^v1\.\d+\.\d+\+berth-0\.1\.0$/);
  assert.equal(version["major"], "1");
});

test("a document that discovery does not have is not found", async () => {
  const response = await serverWith().handle(wireRequest("GET", "/apis/nope.dev", "root"));
  assert.equal(response.status, 404);
});

test("documents get their path decoded and without its last slash", async () => {
  const paths: string[] = [];
  const server = serverWith({
    discovery: ({ path }) => {
      paths.push(path);
      return undefined;
    },
  });
  await server.handle(wireRequest("GET", "/apis/berth%2Edev/?x=1", "root"));
  assert.deepEqual(paths, ["/apis/berth.dev"]);
});

/** The same request twice must not be answered from the first one's state. */
test("requests do not see one another", async () => {
  const server = serverWith();
  const requests: WireRequest[] = Array.from({ length: 20 }, (_, i) => {
    return wireRequest("GET", `${vms}/vm-${i}`, i % 2 === 0 ? "root" : "wrong");
  });
  const responses = await Promise.all(requests.map((request) => server.handle(request)));
  responses.forEach((response, i) => {
    assert.equal(response.status, i % 2 === 0 ? 200 : 401);
    if (i % 2 === 0) assert.equal(bodyJson(response)["name"], `vm-${i}`);
  });
});
