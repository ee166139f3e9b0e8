import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createRoleAuthorizer, isRoleName, roles } from "../authorization/index.ts";
import { createCatalogue } from "../catalogue.ts";
import { createDiscovery } from "../discovery/index.ts";
import {
  createEchoHandler,
  createLogBook,
  createSeededRandom,
  sampleResources,
  wireRequest,
  withBody,
} from "../fixture.ts";
import { createApiServer } from "../server.ts";
import type { Method, Route } from "./route.ts";

/**
 * Walks the whole route table as a stranger, with a wrong token, and as each role, and compares
 * with what stands here. A route that is added without a line here fails.
 */

const catalogue = createCatalogue(sampleResources);
const server = createApiServer({
  catalogue,
  resources: createEchoHandler(),
  discovery: createDiscovery(catalogue),
  openApi: () => ({ status: 200, headers: {}, body: new Uint8Array(0) }),
  authenticators: [{ authenticate: userOfToken }],
  authorizer: createRoleAuthorizer(),
  health: () => [],
  metrics: { contentType: "text/plain", text: async () => "x 1\n" },
  version: "0.0.0",
  clock: new VirtualClock(),
  random: createSeededRandom(),
  log: createLogBook().log,
});

function userOfToken(token: string): { name: string; uid: string; groups: string[] } | undefined {
  const groups: Record<string, string> = {
    admin: "berth:admin",
    edit: "berth:edit",
    view: "berth:view",
    nobody: "berth:nothing",
  };
  const group = groups[token];
  return group === undefined ? undefined : { name: token, uid: token, groups: [group] };
}

const callers = ["", "wrong", "nobody", "view", "edit", "admin"] as const;

/** What stands for the places of a pattern: an ordinary kind, a secret, the system's namespace… */
type Sample = Readonly<Record<string, string>>;

const inDefault: Sample = { namespace: "default", name: "x" };
const inSystem: Sample = { namespace: "berth-system", name: "x" };
const core = { version: "v1" };
const ours = { group: "berth.dev", version: "v1alpha1" };
const secrets = { ...core, resource: "secrets" };
const namespaces = { ...core, resource: "namespaces" };
const machines = { ...ours, resource: "virtualmachines" };
const sets = { ...ours, resource: "vmsets" };
const hypervisors = { ...ours, resource: "hypervisors" };

const everyone = "200 200 200 200 200 200";
const users = "401 401 200 200 200 200";
const readers = "401 401 403 200 200 200";
const editors = "401 401 403 403 200 200";
const admins = "401 401 403 403 403 200";
/** What nobody can do there: it is no such method or thing, for those who may ask at all. */
const missing = "401 401 404 404 404 404";
const refused = "401 401 405 405 405 405";

interface Expectation {
  readonly sample?: Sample;
  readonly answers: Partial<Record<Method, string>>;
}

const plain = (answers: Expectation["answers"]): Expectation[] => [{ answers }];

const expected: Readonly<Record<string, readonly Expectation[]>> = {
  "/": plain({ GET: users }),
  "/version": plain({ GET: everyone }),
  "/livez": plain({ GET: everyone }),
  "/healthz": plain({ GET: everyone }),
  "/readyz": plain({ GET: everyone }),
  "/metrics": plain({ GET: readers }),
  "/api": plain({ GET: users }),
  "/apis": plain({ GET: users }),
  "/api/{version}": [{ sample: core, answers: { GET: users } }],
  "/apis/{group}": [{ sample: ours, answers: { GET: users } }],
  "/apis/{group}/{version}": [{ sample: ours, answers: { GET: users } }],
  "/openapi/v2": plain({ GET: users }),
  "/openapi/v3": plain({ GET: users }),
  "/openapi/v3/{path...}": [{ sample: { "path...": "api/v1" }, answers: { GET: users } }],
  "/apis/authentication.k8s.io/v1/selfsubjectreviews": plain({ POST: reviewed() }),
  "/apis/authentication.k8s.io/v1beta1/selfsubjectreviews": plain({ POST: reviewed() }),
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": plain({ POST: reviewed() }),
  "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": plain({ POST: reviewed() }),
  "/api/{version}/{resource}": [
    { sample: namespaces, answers: { GET: readers, POST: admins, DELETE: admins } },
    // Over all namespaces, and the system's would be among them.
    { sample: secrets, answers: { GET: admins, POST: refused, DELETE: refused } },
  ],
  "/api/{version}/{resource}/{name}": [
    {
      sample: { ...namespaces, name: "default" },
      answers: { GET: readers, PUT: admins, PATCH: admins, DELETE: admins },
    },
    {
      sample: { ...secrets, name: "x" },
      answers: { GET: missing, PUT: missing, PATCH: missing, DELETE: missing },
    },
  ],
  "/api/{version}/namespaces/{name}/status": [
    {
      sample: { ...core, name: "default" },
      answers: { GET: readers, PUT: admins, PATCH: admins },
    },
  ],
  "/api/{version}/{resource}/{name}/{subresource}": [
    {
      sample: { ...core, resource: "nodes", name: "x", subresource: "proxy" },
      answers: { GET: missing, PUT: missing, PATCH: missing },
    },
  ],
  "/api/{version}/namespaces/{namespace}/{resource}": [
    {
      sample: { ...secrets, ...inDefault },
      answers: { GET: editors, POST: editors, DELETE: editors },
    },
    {
      sample: { ...secrets, ...inSystem },
      answers: { GET: admins, POST: admins, DELETE: admins },
    },
  ],
  "/api/{version}/namespaces/{namespace}/{resource}/{name}": [
    {
      sample: { ...secrets, ...inDefault },
      answers: { GET: editors, PUT: editors, PATCH: editors, DELETE: editors },
    },
    {
      sample: { ...secrets, ...inSystem },
      answers: { GET: admins, PUT: admins, PATCH: admins, DELETE: admins },
    },
  ],
  "/api/{version}/namespaces/{namespace}/{resource}/{name}/{subresource}": [
    {
      sample: { ...secrets, ...inDefault, subresource: "status" },
      answers: { GET: missing, PUT: missing, PATCH: missing },
    },
  ],
  "/apis/{group}/{version}/{resource}": [
    { sample: machines, answers: { GET: readers, POST: refused, DELETE: refused } },
    { sample: hypervisors, answers: { GET: readers, POST: admins, DELETE: admins } },
    {
      sample: { ...ours, resource: "ghosts" },
      answers: { GET: missing, POST: missing, DELETE: missing },
    },
  ],
  "/apis/{group}/{version}/{resource}/{name}": [
    {
      sample: { ...hypervisors, name: "x" },
      answers: { GET: readers, PUT: admins, PATCH: admins, DELETE: admins },
    },
  ],
  "/apis/{group}/{version}/{resource}/{name}/{subresource}": [
    {
      sample: { ...hypervisors, name: "x", subresource: "status" },
      answers: { GET: readers, PUT: admins, PATCH: admins },
    },
  ],
  "/apis/{group}/{version}/namespaces/{namespace}/{resource}": [
    {
      sample: { ...machines, ...inDefault },
      answers: { GET: readers, POST: editors, DELETE: editors },
    },
    {
      sample: { ...machines, ...inSystem },
      answers: { GET: admins, POST: admins, DELETE: admins },
    },
    {
      sample: { ...hypervisors, ...inDefault },
      answers: { GET: missing, POST: missing, DELETE: missing },
    },
  ],
  "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}": [
    {
      sample: { ...machines, ...inDefault },
      answers: { GET: readers, PUT: editors, PATCH: editors, DELETE: editors },
    },
    {
      sample: { ...machines, ...inSystem },
      answers: { GET: admins, PUT: admins, PATCH: admins, DELETE: admins },
    },
  ],
  "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}/{subresource}": [
    {
      sample: { ...machines, ...inDefault, subresource: "status" },
      answers: { GET: readers, PUT: admins, PATCH: admins },
    },
    {
      sample: { ...sets, ...inDefault, subresource: "scale" },
      answers: { GET: readers, PUT: editors, PATCH: editors },
    },
    {
      sample: { ...machines, ...inDefault, subresource: "scale" },
      answers: { GET: missing, PUT: missing, PATCH: missing },
    },
  ],
};

function reviewed(): string {
  return users.replaceAll("200", "201");
}

for (const route of server.routes) {
  test(`everybody gets from ${route.pattern} what they should`, async () => {
    const expectations = expected[route.pattern];
    assert.ok(expectations, "the route is new: say here who may call it");
    for (const { sample = {}, answers } of expectations) {
      assert.deepEqual(Object.keys(answers), route.methods, "every method is spelled out");
      for (const method of route.methods) {
        const path = fill(route, sample);
        assert.equal(await answersTo(method, path), answers[method], `${method} ${path}`);
      }
    }
  });
}

test("every role has a column", () => {
  const columns = callers.filter((caller) => isRoleName(caller));
  assert.deepEqual(columns.toSorted(), Object.keys(roles).toSorted());
});

test("every expectation belongs to a route", () => {
  const patterns = new Set(server.routes.map((route) => route.pattern));
  assert.deepEqual(
    Object.keys(expected).filter((pattern) => !patterns.has(pattern)),
    [],
  );
});

test("only the routes for probes and the version are public", () => {
  const open = server.routes.filter((route) => route.access === "public");
  assert.deepEqual(
    open.map((route) => route.pattern),
    ["/version", "/livez", "/healthz", "/readyz"],
  );
});

test("metrics are for those who may read everywhere, and a refusal says which path", async () => {
  const metrics = await server.handle(wireRequest("GET", "/metrics", "view"));
  assert.equal(metrics.headers["content-type"], "text/plain");
  assert.equal(Buffer.from(metrics.body as Uint8Array).toString(), "x 1\n");
  const tenant = { name: "t", uid: "t", groups: ["berth:admin:team-a"] };
  const refusal = await server.handleAs(tenant, wireRequest("GET", "/metrics"));
  assert.equal(refusal.status, 403);
  assert.match(
    Buffer.from(refusal.body as Uint8Array).toString(),
    /forbidden: User \\"t\\" cannot get path \\"\/metrics\\"/,
  );
});

test("methods that a path does not have are refused, to strangers without saying so", async () => {
  for (const route of server.routes) {
    const path = fill(route, { ...machines, ...inDefault, subresource: "status", "path...": "a" });
    for (const method of ["HEAD", "OPTIONS", "TRACE", "get", "CONNECT", ""]) {
      const stranger = await server.handle(wireRequest(method, path));
      assert.equal(stranger.status, route.access === "public" ? 405 : 401, `${method} ${path}`);
      const admin = await server.handle(wireRequest(method, path, "admin"));
      assert.equal(admin.status, 405, `${method} ${path}`);
    }
  }
});

test("a path that is no route is 404 to users and 401 to all others", async () => {
  const paths = ["/nope", "/api/v1/a/b/c/d/e/f", "//api", "/apis//v1"];
  for (const path of paths) assert.equal(await answersTo("GET", path), missing, path);
});

test("every answer is observed in words that name no object", async () => {
  const seen: string[] = [];
  const observed = createApiServer({
    catalogue,
    resources: createEchoHandler(),
    discovery: createDiscovery(catalogue),
    openApi: () => undefined,
    authenticators: [{ authenticate: userOfToken }],
    authorizer: createRoleAuthorizer(),
    health: () => [],
    version: "0.0.0",
    clock: new VirtualClock(),
    random: createSeededRandom(),
    log: createLogBook().log,
    observe: ({ verb, resource, code }) => seen.push(`${verb} ${resource} ${code}`),
  });
  const machine = "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines";
  for (const path of [`${machine}/web-1`, `${machine}?watch=true`, "/livez", "/nope/web-1"]) {
    await observed.handle(wireRequest("GET", path, "view"));
  }
  await observed.handle(wireRequest("POST", machine, "view"));
  await observed.handle(wireRequest("GET", `${machine}/web-1`));
  assert.deepEqual(seen, [
    "get virtualmachines 200",
    "watch virtualmachines 200",
    "other /livez 200",
    "other other 404",
    "create virtualmachines 403",
    "other other 401",
  ]);
});

async function answersTo(method: Method, path: string): Promise<string> {
  const answers = callers.map(async (token) => {
    const request = wireRequest(method, path, token === "" ? undefined : token);
    const spec = { resourceAttributes: { verb: "get", resource: "secrets" } };
    return (await server.handle(withBody(request, { spec }))).status;
  });
  return (await Promise.all(answers)).join(" ");
}

function fill(route: Route, sample: Sample): string {
  return route.pattern.replaceAll(/\{([^}]+)\}/g, (_, place: string) => {
    return sample[place] ?? assert.fail(`no sample for ${place} of ${route.pattern}`);
  });
}
