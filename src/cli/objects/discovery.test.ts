import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { discover } from "./discovery.ts";
import { listObjects } from "./read-objects.ts";
import { createServer, type Server } from "./server.ts";

type Answers = Readonly<Record<string, unknown>>;

function respond(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): WireResponse {
  return { status, headers, body: Buffer.from(JSON.stringify(body)) };
}

function serverOf(send: (url: string) => Promise<WireResponse>): Server & { clock: VirtualClock } {
  const clock = new VirtualClock();
  const options = { url: "https://x", namespace: "default", clock };
  return { ...createServer({ ...options, send: ({ url }) => send(url) }), clock };
}

function answering(answers: Answers): Server {
  return serverOf(async (url) => {
    const body = answers[url];
    if (body !== undefined) return respond(200, body);
    return respond(503, { kind: "Status", code: 503, message: "its own server is away" });
  });
}

const machines = {
  name: "machines",
  singularName: "machine",
  namespaced: true,
  kind: "Machine",
  verbs: ["list"],
  shortNames: ["m"],
};

describe("discovery", () => {
  test("reads the older form, each kind in the version that is preferred", async () => {
    const kinds = await discover(
      answering({
        "/api": { kind: "APIVersions", versions: ["v1"] },
        "/api/v1": { resources: [{ name: "pods", kind: "Pod", verbs: [] }, { name: "pods/log" }] },
        "/apis": {
          kind: "APIGroupList",
          groups: [
            {
              name: "a.io",
              versions: [{ groupVersion: "a.io/v1beta1" }, { groupVersion: "a.io/v1" }],
              preferredVersion: { groupVersion: "a.io/v1" },
            },
            { name: "away.io", versions: [{ groupVersion: "away.io/v1" }] },
          ],
        },
        "/apis/a.io/v1": { resources: [machines] },
        "/apis/a.io/v1beta1": { resources: [machines, { ...machines, name: "olds" }] },
      }),
    );
    assert.deepEqual(
      kinds.map(({ plural, group, version, singular }) => [plural, group, version, singular]),
      [
        ["pods", "", "v1", "pod"],
        ["machines", "a.io", "v1", "machine"],
        ["olds", "a.io", "v1beta1", "machine"],
      ],
    );
  });

  test("reads the aggregated form", async () => {
    const resource = {
      resource: "machines",
      responseKind: { group: "a.io", version: "v1", kind: "Machine" },
      scope: "Namespaced",
      singularResource: "machine",
      verbs: ["get", "list"],
      categories: ["berth"],
    };
    const kinds = await discover(
      answering({
        "/api": { kind: "APIGroupDiscoveryList", items: [] },
        "/apis": {
          kind: "APIGroupDiscoveryList",
          items: [
            { metadata: { name: "a.io" }, versions: [{ version: "v1", resources: [resource] }] },
          ],
        },
      }),
    );
    assert.deepEqual(kinds, [
      {
        group: "a.io",
        version: "v1",
        kind: "Machine",
        plural: "machines",
        singular: "machine",
        shortNames: [],
        categories: ["berth"],
        namespaced: true,
        verbs: ["get", "list"],
      },
    ]);
  });
});

describe("a server", () => {
  test("is given up when it does not answer", async () => {
    const server = serverOf(() => new Promise(() => undefined));
    const asked = server.ask({ path: "/" });
    server.clock.advance(30_000);
    await assert.rejects(asked, /no answer within 30 seconds/);
    assert.equal(server.clock.timers, 0);
  });

  test("refuses in its own words, and a proxy in front of it in its", async () => {
    const status = { kind: "Status", code: 403, reason: "Forbidden", message: "no" };
    await assert.rejects(serverOf(async () => respond(403, status)).ask({ path: "/" }), (error) => {
      return error instanceof ApiError && error.code === 403 && error.message === "no";
    });
    const proxy = serverOf(async () => ({ status: 502, headers: {}, body: Buffer.from("<html>") }));
    await assert.rejects(proxy.ask({ path: "/" }), /the server answered 502: <html>/);
  });

  test("passes its warnings on, each once", async () => {
    const warning = '299 - "old \\"field\\"", 299 - "and this"';
    const server = serverOf(async () => respond(200, {}, { warning }));
    await server.ask({ path: "/" });
    await server.ask({ path: "/" });
    assert.deepEqual([...server.warnings], ['old "field"', "and this"]);
  });
});

test("a list whose next page is too old is read anew, as a whole", async () => {
  const kind = {
    ...machines,
    group: "a.io",
    version: "v1",
    plural: "machines",
    singular: "machine",
  };
  const item = (name: string): object => ({ metadata: { name } });
  const urls: string[] = [];
  const server = serverOf(async (url) => {
    urls.push(url);
    if (url.includes("continue=t")) return respond(410, { kind: "Status", code: 410 });
    if (!url.includes("limit"))
      return respond(200, { metadata: {}, items: [item("a"), item("b")] });
    return respond(200, { metadata: { continue: "t" }, items: [item("a")] });
  });
  const { items } = await listObjects(server, { kind: { ...kind, categories: [] } });
  assert.deepEqual(
    items.map(({ metadata }) => metadata.name),
    ["a", "b"],
  );
  assert.equal(urls.length, 3);
});
