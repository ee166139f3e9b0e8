import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createRoleAuthorizer } from "../authorization/index.ts";
import { createCatalogue } from "../catalogue.ts";
import { createDiscovery } from "../discovery/index.ts";
import {
  bodyText,
  createEchoHandler,
  createLogBook,
  createSeededRandom,
  sampleResources,
} from "../fixture.ts";
import { createOpenApi } from "../openapi/index.ts";
import { createApiServer } from "../server.ts";

const { log, lines } = createLogBook();
const catalogue = createCatalogue(sampleResources);
const admin = { name: "root", uid: "1", groups: ["berth:admin"] };
const server = createApiServer({
  catalogue,
  resources: createEchoHandler(),
  discovery: createDiscovery(catalogue),
  openApi: createOpenApi(catalogue),
  authenticators: [{ authenticate: (token) => (token === "good" ? admin : undefined) }],
  authorizer: createRoleAuthorizer(),
  health: () => [],
  version: "0.1.0",
  clock: new VirtualClock(),
  random: createSeededRandom(),
  log,
});

const words = [
  "api",
  "apis",
  "v1",
  "berth.dev",
  "v1alpha1",
  "namespaces",
  "default",
  "virtualmachines",
  "secrets",
  "status",
  "scale",
  "openapi",
  "v3",
  "authorization.k8s.io",
  "healthz",
  "version",
  "selfsubjectaccessreviews",
  "__proto__",
  "constructor",
  "..",
  ".",
  "",
  "%2e%2e",
  "%",
  "%00",
  "%2F",
  "*",
  "\u00e4",
  "\ud800",
  "a".repeat(300),
];
const segment = fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 8 }));
const query = fc.constantFrom(
  "",
  "?",
  "?watch",
  "?watch=true",
  "?fieldSelector=metadata.name%3Dx",
  "?fieldSelector=%",
  "?a=b&a=c",
  "?verbose",
  "?%00",
  "?__proto__=x",
  "?limit=-1",
  "?+++",
);
const url = fc
  .tuple(fc.array(segment, { maxLength: 9 }), query)
  .map(([segments, rest]) => `/${segments.join("/")}${rest}`);
const headers = fc.dictionary(
  fc.constantFrom("accept", "content-type", "authorization", "if-none-match", "host"),
  fc.oneof(
    fc.constantFrom(
      "Bearer good",
      "Bearer bad",
      "application/json",
      "*/*;q=x",
      ";;;,,,",
      "Basic x",
    ),
    fc.constant("application/vnd.kubernetes.protobuf"),
    fc.string({ maxLength: 20 }),
  ),
);
const body = fc.oneof(
  fc.uint8Array({ maxLength: 60 }),
  fc.json({ maxDepth: 3 }).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from([0x6b, 0x38, 0x73, 0, ...bytes])),
);
const method = fc.constantFrom(
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "",
  "get",
);
const request = fc.record({ method, url, headers, body });

test("whatever is sent is answered, a refusal is a Status, and nothing is an internal error", async () => {
  await fc.assert(
    fc.asyncProperty(request, fc.boolean(), async (candidate, isUser) => {
      const sent = isUser
        ? { ...candidate, headers: { ...candidate.headers, authorization: "Bearer good" } }
        : candidate;
      const response = await server.handle(sent);
      assert.ok(response.status >= 200 && response.status < 500, String(response.status));
      if (response.status >= 400) {
        const status = JSON.parse(bodyText(response));
        assert.equal(status.kind, "Status");
        assert.equal(status.code, response.status);
      }
    }),
    { numRuns: 5_000 },
  );
  assert.deepEqual(
    lines.filter((line) => line.level === "error"),
    [],
  );
});

test("without the right token nothing but the public paths is ever answered", async () => {
  const open = new Set(["version", "livez", "healthz", "readyz"]);
  await fc.assert(
    fc.asyncProperty(request, async (candidate) => {
      const sent = { ...candidate, headers: { ...candidate.headers, authorization: "Bearer bad" } };
      const response = await server.handle(sent);
      const isOpen = open.has(candidate.url.split("?")[0]?.replaceAll("/", "") ?? "");
      if (!isOpen) assert.ok([400, 401, 414].includes(response.status), candidate.url);
    }),
    { numRuns: 3_000 },
  );
});
