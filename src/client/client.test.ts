import assert from "node:assert/strict";
import { test } from "node:test";
import { hypervisorKind, virtualMachineKind, type VirtualMachine } from "../api/index.ts";
import { builtinResources } from "../api/builtin/index.ts";
import { ApiError, notFound } from "../kernel/status.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import { createClient, type Client } from "./client.ts";
import { isExpired, isOutcomeUnknown, NetworkError } from "./errors.ts";
import { FakeServer, flush, jsonResponse, widgetKind, type Widget } from "./testing.ts";
import { inProcess, type Transport } from "./transport.ts";

const widget: Widget = {
  apiVersion: "berth.dev/v1",
  kind: "Widget",
  metadata: { name: "a", namespace: "default" },
};
const at = { name: "a", namespace: "default" };

interface Recorder {
  client: Client;
  clock: VirtualClock;
  requests: WireRequest[];
}

function answering(
  answer: (request: WireRequest) => WireResponse | Promise<WireResponse>,
): Recorder {
  const clock = new VirtualClock();
  const requests: WireRequest[] = [];
  const transport = inProcess(async (request) => {
    requests.push(request);
    return answer(request);
  });
  return { client: createClient({ transport, clock }), clock, requests };
}

function sent(request: WireRequest | undefined): [string, string, unknown] {
  assert.ok(request);
  const text = new TextDecoder().decode(request.body);
  return [request.method, request.url, text === "" ? undefined : JSON.parse(text)];
}

const base = "/apis/berth.dev/v1/namespaces/default/widgets";

test("speaks the URLs, methods and bodies of the Kubernetes API", async () => {
  const { client, clock, requests } = answering(() => jsonResponse(200, widget));
  const widgets = client.of(widgetKind);
  await widgets.get(at);
  await widgets.create(widget, { fieldManager: "me", dryRun: true });
  await widgets.update(widget);
  await widgets.updateStatus(widget);
  await widgets.patch(at, { merge: { size: null } }, { subresource: "status" });
  await widgets.patch(at, { json: [{ op: "remove", path: "/size" }] });
  await widgets.delete(at, { preconditions: { uid: "u" }, propagationPolicy: "Foreground" });
  assert.deepEqual(requests.map(sent), [
    ["GET", `${base}/a`, undefined],
    ["POST", `${base}?fieldManager=me&dryRun=All`, widget],
    ["PUT", `${base}/a`, widget],
    ["PUT", `${base}/a/status`, widget],
    ["PATCH", `${base}/a/status`, { size: null }],
    ["PATCH", `${base}/a`, [{ op: "remove", path: "/size" }]],
    [
      "DELETE",
      `${base}/a`,
      {
        apiVersion: "v1",
        kind: "DeleteOptions",
        preconditions: { uid: "u" },
        propagationPolicy: "Foreground",
      },
    ],
  ]);
  assert.deepEqual(
    requests.map(({ headers }) => headers["content-type"]),
    [
      undefined,
      "application/json",
      "application/json",
      "application/json",
      "application/merge-patch+json",
      "application/json-patch+json",
      "application/json",
    ],
  );
  assert.equal(clock.timers, 0, "no deadline outlives its request");
});

test("reaches cluster-wide kinds, the core group and all namespaces", async () => {
  const list = { kind: "List", apiVersion: "v1", metadata: {}, items: [] };
  const { client, requests } = answering(({ url }) =>
    jsonResponse(200, url.includes("?") ? list : widget),
  );
  const secrets = builtinResources.find(({ plural }) => plural === "secrets");
  assert.ok(secrets);
  await client.of(secrets).get({ namespace: "a b", name: "x" });
  await client.of(secrets).list({ labelSelector: "a=b,c in (d)" });
  await client.of(hypervisorKind).get({ name: "demo" });
  assert.deepEqual(
    requests.map(({ url }) => url),
    [
      "/api/v1/namespaces/a%20b/secrets/x",
      "/api/v1/secrets?labelSelector=a%3Db%2Cc%20in%20(d)&limit=500",
      "/apis/berth.dev/v1alpha1/hypervisors/demo",
    ],
  );
});

test("refuses to ask for a namespaced object without its namespace", async () => {
  const { client, requests } = answering(() => jsonResponse(200, widget));
  await assert.rejects(client.of(widgetKind).get({ name: "a" }), /has its namespace/);
  await assert.rejects(client.of(widgetKind).get({ name: "", namespace: "b" }), /has a name/);
  assert.equal(requests.length, 0);
});

test("carries the types of our kinds", async () => {
  const { client } = answering(() => jsonResponse(200, { ...widget, spec: {} }));
  const vm: VirtualMachine = await client.of(virtualMachineKind).get(at);
  // @ts-expect-error: the compiler knows that a VirtualMachine has no such field.
  assert.equal(vm.spec.nonsense, undefined);
});

test("a refusal is an ApiError in the server's own words", async () => {
  const status = notFound({ group: "berth.dev", resource: "widgets", name: "a" }).toStatus();
  const { client } = answering(() => jsonResponse(404, status));
  await assert.rejects(client.of(widgetKind).get(at), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual(error.toStatus(), status);
    assert.equal(isOutcomeUnknown(error), false);
    return true;
  });
});

test("a refusal that is no Status is told shortly", async () => {
  const body = new TextEncoder().encode(`<html>${"x".repeat(1_000)}`);
  const { client } = answering(() => ({ status: 502, headers: {}, body }));
  await assert.rejects(client.of(widgetKind).create(widget), (error) => {
    assert.ok(error instanceof ApiError);
    assert.equal(error.code, 502);
    assert.ok(error.message.startsWith("the server answered 502: <html>"));
    assert.ok(error.message.length < 300);
    assert.equal(isOutcomeUnknown(error), true, "who knows what stood behind the proxy");
    return true;
  });
});

test("delete says whether the object is gone or stays for its finalizers", async () => {
  const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };
  const gone = answering(() => jsonResponse(200, success));
  assert.equal(await gone.client.of(widgetKind).delete(at), undefined);
  const stays = answering(() => jsonResponse(200, widget));
  assert.deepEqual(await stays.client.of(widgetKind).delete(at), widget);
});

test("lists page by page, at one revision, and gives every item its kind", async () => {
  const server = new FakeServer();
  server.pageItems = 2;
  for (const name of ["a", "b", "c", "d", "e"]) server.put(name);
  const client = createClient({ transport: server.transport, clock: new VirtualClock() });
  const list = await client.of(widgetKind).list({ resourceVersion: "0" });
  assert.deepEqual(
    list.items.map(({ metadata }) => metadata.name),
    ["a", "b", "c", "d", "e"],
  );
  assert.deepEqual(list.metadata, { resourceVersion: "5" });
  assert.deepEqual(
    server.requests.map((request) => request.split("?")[1]),
    ["resourceVersion=0&limit=500", "limit=500&continue=2", "limit=500&continue=4"],
  );
  assert.equal(list.items[0]?.kind, "Widget");
});

test("lists anew in one piece when a page has expired", async () => {
  const server = new FakeServer();
  server.pageItems = 2;
  for (const name of ["a", "b", "c"]) server.put(name);
  server.compact();
  const client = createClient({ transport: server.transport, clock: new VirtualClock() });
  assert.equal((await client.of(widgetKind).list()).items.length, 3);
});

const lost: { reason: string; transport: Transport; read: string; write: string }[] = [
  {
    reason: "nothing was sent",
    transport: async () => {
      throw new NetworkError("Unreachable", "connection refused");
    },
    read: "Unreachable",
    write: "Unreachable",
  },
  {
    reason: "the connection broke before an answer came",
    transport: async () => {
      throw new Error("socket hang up");
    },
    read: "Unreachable",
    write: "UnknownOutcome",
  },
  {
    reason: "the answer is torn",
    transport: async () => ({ status: 200, headers: {}, body: new TextEncoder().encode('{"met') }),
    read: "Unreachable",
    write: "UnknownOutcome",
  },
  {
    reason: "the answer is nonsense",
    transport: async () => jsonResponse(200, "hello"),
    read: "Unreachable",
    write: "UnknownOutcome",
  },
];

for (const { reason, transport, read, write } of lost) {
  test(`when ${reason}, a read is ${read}, a write ${write}, and neither is resent`, async () => {
    let requests = 0;
    const counting: Transport = (request, signal) => {
      requests++;
      return transport(request, signal);
    };
    const client = createClient({ transport: counting, clock: new VirtualClock() });
    const code = (expected: string) => (error: unknown) =>
      error instanceof NetworkError && error.code === expected;
    await assert.rejects(client.of(widgetKind).get(at), code(read));
    await assert.rejects(client.of(widgetKind).create(widget), code(write));
    await assert.rejects(client.of(widgetKind).delete(at), code(write));
    assert.equal(requests, 3);
  });
}

test("gives up a server that does not answer in time, and tells the transport", async () => {
  const clock = new VirtualClock();
  const signals: (AbortSignal | undefined)[] = [];
  const transport: Transport = (_request, signal) => {
    signals.push(signal);
    return new Promise<never>(() => undefined);
  };
  const client = createClient({ transport, clock, timeoutMs: 5_000 });
  const read = assert.rejects(client.of(widgetKind).get(at), /no answer within 5000 ms/);
  const write = assert.rejects(client.of(widgetKind).update(widget), isOutcomeUnknown);
  await flush();
  clock.advance(4_999);
  assert.equal(
    signals.some((signal) => signal?.aborted),
    false,
  );
  clock.advance(1);
  await Promise.all([read, write]);
  assert.equal(
    signals.every((signal) => signal?.aborted),
    true,
  );
  assert.equal(clock.timers, 0);
});

test("tells the transport to give up after an answer without sense, not after a whole one", async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const answers = [jsonResponse(200, widget), jsonResponse(200, "hello")];
  const transport: Transport = async (_request, signal) => {
    signals.push(signal);
    return answers.shift() ?? jsonResponse(404, {});
  };
  const clock = new VirtualClock();
  const client = createClient({ transport, clock });
  await client.of(widgetKind).get(at);
  await assert.rejects(client.of(widgetKind).get(at));
  assert.deepEqual(
    signals.map((signal) => signal?.aborted),
    [false, true],
  );
  assert.equal(clock.timers, 0);
});

test("gives up a body that does not end in time", async () => {
  const body = { start: () => () => undefined };
  const { client, clock } = answering(() => ({ status: 200, headers: {}, body }));
  const read = assert.rejects(client.of(widgetKind).get(at), /no answer within/);
  await flush();
  clock.advance(30_000);
  await read;
});

test("a caller who gives up a read gets the own reason; of a write the outcome is unknown", async () => {
  const reason = new Error("no longer wanted");
  const client = createClient({
    transport: () => new Promise<never>(() => undefined),
    clock: new VirtualClock(),
  });
  const controller = new AbortController();
  const { signal } = controller;
  const read = assert.rejects(client.of(widgetKind).get(at, { signal }), reason);
  const write = assert.rejects(client.of(widgetKind).create(widget, { signal }), isOutcomeUnknown);
  await flush();
  controller.abort(reason);
  await Promise.all([read, write]);
  await assert.rejects(client.of(widgetKind).create(widget, { signal }), reason, "it was not sent");
});

test("a watch gives changes as they come and ends with the loop", async () => {
  const server = new FakeServer();
  const clock = new VirtualClock();
  const client = createClient({ transport: server.transport, clock });
  server.put("a");
  const seen: string[] = [];
  for await (const event of client.of(widgetKind).watch({ resourceVersion: "0" })) {
    seen.push(`${event.type} ${event.object.metadata.name}`);
    if (seen.length === 1) server.put("b");
    if (seen.length === 2) server.remove("b");
    if (seen.length === 3) break;
  }
  assert.deepEqual(seen, ["ADDED a", "ADDED b", "DELETED b"]);
  assert.equal(server.watches, 0, "the server knows that nobody listens");
  assert.equal(clock.timers, 0);
});

test("a watch puts torn lines together and leaves out what is torn for good", async () => {
  const server = new FakeServer();
  const client = createClient({ transport: server.transport, clock: new VirtualClock() });
  const watch = client.of(widgetKind).watch();
  const first = watch.next();
  await flush();
  const text = JSON.stringify({ type: "ADDED", object: { ...widget, note: "é\u2028" } });
  const bytes = new TextEncoder().encode(`${text}\r\n\n`);
  for (const byte of bytes) server.sendRaw(Uint8Array.of(byte));
  assert.equal(JSON.stringify((await first).value), text, "also letters of several bytes");
  const second = watch.next();
  await flush();
  server.sendRaw(`${text}\n${text.slice(0, 20)}`);
  server.endWatches();
  assert.equal((await second).value?.type, "ADDED");
  assert.equal((await watch.next()).done, true);
});

test("an error in a watch is thrown as an ApiError", async () => {
  const server = new FakeServer();
  const client = createClient({ transport: server.transport, clock: new VirtualClock() });
  const next = client.of(widgetKind).watch().next();
  await flush();
  server.fail(new ApiError(410, "Expired", "too old resource version: 1 (2)").toStatus());
  await assert.rejects(next, (error) => isExpired(error) && /too old/.test(String(error)));
  server.compact();
  server.put("a");
  server.compact();
  await assert.rejects(client.of(widgetKind).watch({ resourceVersion: "0" }).next(), isExpired);
});

test("a slow reader of a watch is seen by the server as bytes that pile up", async () => {
  let buffered = 0;
  const body = {
    start: (sink: { write(chunk: Uint8Array): void; bufferedBytes(): number }) => {
      sink.write(
        new TextEncoder().encode(`${JSON.stringify({ type: "ADDED", object: widget })}\n`),
      );
      sink.write(new Uint8Array(1_000).fill(0x20));
      buffered = sink.bufferedBytes();
      return () => undefined;
    },
  };
  const { client } = answering(() => ({ status: 200, headers: {}, body }));
  const watch = client.of(widgetKind).watch();
  await watch.next();
  assert.ok(buffered > 1_000);
  await watch.return();
});
