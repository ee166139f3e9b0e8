import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createClient, type Transport } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createEventRecorder, type EventDetails } from "./event-recorder.ts";
import { RecentMap } from "./recent-map.ts";
import { FakeApi, flush, pass, seededRandom } from "./testing.ts";

const started: EventDetails = { type: "Normal", reason: "Started", message: "The VM runs." };

function vm(name: string, metadata: object = {}): KubeObject {
  const named = { namespace: "prod", name, uid: `uid-${name}`, resourceVersion: "7", ...metadata };
  return { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", metadata: named };
}

function open(transport?: Transport) {
  const api = new FakeApi();
  const clock = new VirtualClock();
  const dropped: string[] = [];
  const recorder = createEventRecorder({
    client: createClient({ transport: transport ?? api.transport, clock }),
    clock,
    random: seededRandom(1),
    component: "berth.dev/vm-controller",
    instance: "node-1",
    onDropped: (why) => dropped.push(why),
  });
  const events = (): Record<string, unknown>[] => [...api.objects.values()];
  return { api, clock, recorder, dropped, events };
}

describe("an event recorder", () => {
  test("writes an Event in the namespace of its object", async () => {
    const { api, recorder, events } = open();
    recorder.event(vm("web"), started);
    await recorder.stop();
    const [path] = api.objects.keys();
    assert.match(path ?? "", /^\/api\/v1\/namespaces\/prod\/events\/web\.[0-9a-f]{16}$/);
    const [{ metadata: _metadata, ...event } = {}] = events();
    assert.deepEqual(event, {
      apiVersion: "v1",
      kind: "Event",
      involvedObject: {
        apiVersion: "berth.dev/v1alpha1",
        kind: "VirtualMachine",
        namespace: "prod",
        name: "web",
        uid: "uid-web",
        resourceVersion: "7",
      },
      ...started,
      count: 1,
      firstTimestamp: "2026-01-02T03:04:05Z",
      lastTimestamp: "2026-01-02T03:04:05Z",
      source: { component: "berth.dev/vm-controller" },
      reportingComponent: "berth.dev/vm-controller",
      reportingInstance: "node-1",
    });
  });

  test("puts those of cluster-wide objects into the namespace default", async () => {
    const { api, recorder } = open();
    const { namespace: _none, ...metadata } = vm("pve").metadata;
    recorder.event({ ...vm("pve"), metadata }, started);
    await recorder.stop();
    assert.match([...api.objects.keys()].join(), /^\/api\/v1\/namespaces\/default\/events\/pve\./);
  });

  test("counts the same again instead of writing a second one", async () => {
    const { clock, recorder, events } = open();
    recorder.event(vm("web"), started);
    recorder.event(vm("web"), started);
    await pass(clock, 60_000);
    recorder.event(vm("web", { resourceVersion: "8" }), started);
    recorder.event(vm("web"), { ...started, message: "Another." });
    recorder.event(vm("db"), started);
    await recorder.stop();
    const rows = events().map(({ count, firstTimestamp, lastTimestamp }) => {
      return [count, String(firstTimestamp).slice(11), String(lastTimestamp).slice(11)];
    });
    assert.deepEqual(rows, [
      [3, "03:04:05Z", "03:05:05Z"],
      [1, "03:05:05Z", "03:05:05Z"],
      [1, "03:05:05Z", "03:05:05Z"],
    ]);
  });

  test("writes it anew, with its count, once the server has forgotten it", async () => {
    const { api, recorder, events } = open();
    recorder.event(vm("web"), started);
    await flush();
    api.objects.clear();
    recorder.event(vm("web"), started);
    await recorder.stop();
    assert.deepEqual(
      events().map(({ count }) => count),
      [2],
    );
  });

  test("lets 25 of an object through, then one every five minutes, each object for itself", async () => {
    const { clock, recorder, dropped, events } = open();
    for (let i = 0; i < 40; i++) recorder.event(vm("web"), { ...started, message: `${i}` });
    recorder.event(vm("db"), started);
    await flush();
    assert.equal(events().length, 26);
    assert.deepEqual(new Set(dropped), new Set(["too many of this object"]));
    await pass(clock, 5 * 60_000 - 1);
    recorder.event(vm("web"), { ...started, message: "early" });
    await pass(clock, 1);
    recorder.event(vm("web"), { ...started, message: "late" });
    await recorder.stop();
    assert.equal(events().length, 27);
    assert.equal(dropped.length, 16);
  });

  test("cuts long texts between characters, and long names too", async () => {
    const { recorder, events, api } = open();
    const message = "ü".repeat(2_000);
    recorder.event(vm(`${"n".repeat(235)}.${"m".repeat(17)}`), { ...started, message });
    await recorder.stop();
    const text = String(events()[0]?.["message"]);
    assert.equal(Buffer.byteLength(text), 1023);
    assert.match(text, /^ü+…$/);
    const name = [...api.objects.keys()][0]?.split("/").at(-1) ?? "";
    assert.match(name, /^n{235}\.[0-9a-f]{16}$/);
  });

  for (const fault of ["away", "refuses", "loses the reply", "breaks after doing it"] as const) {
    test(`writes it once although the server ${fault} at first`, async () => {
      const { api, clock, recorder, dropped, events } = open();
      api.fault = fault;
      recorder.event(vm("web"), started);
      await flush();
      api.fault = "none";
      await pass(clock, 2_000);
      await recorder.stop();
      assert.deepEqual(
        events().map(({ count }) => count),
        [1],
      );
      assert.deepEqual(dropped, []);
    });
  }

  test("gives up after three tries, and goes on with the next", async () => {
    const { api, clock, recorder, dropped, events } = open();
    api.fault = "away";
    recorder.event(vm("web"), started);
    await pass(clock, 4_000);
    assert.deepEqual(dropped, ["not written"]);
    api.fault = "none";
    recorder.event(vm("db"), started);
    await recorder.stop();
    assert.equal(events().length, 1);
  });

  test("never throws and never waits, whatever it is given", async () => {
    const { recorder, dropped } = open(() => Promise.reject(new Error("broken")));
    recorder.event(vm(""), started);
    // @ts-expect-error -- what a caller without types may do
    recorder.event(undefined, started);
    recorder.event(vm("web"), started);
    await recorder.stop();
    recorder.event(vm("web"), started);
    assert.deepEqual(dropped, ["not an Event", "not an Event", "not written", "stopped"]);
  });

  test("keeps a bounded number waiting", async () => {
    const { clock, recorder, dropped } = open(() => new Promise(() => undefined));
    for (let i = 0; i < 1_500; i++) recorder.event(vm(`vm-${i}`), started);
    assert.equal(dropped.length, 499);
    assert.deepEqual(new Set(dropped), new Set(["too many waiting to be written"]));
    await flush();
    assert.equal(clock.timers, 1);
  });
});

test("a map of the recent forgets what was not used for longest", () => {
  const map = new RecentMap<number>(2);
  map.of("a", () => 1);
  map.of("b", () => 2);
  map.of("a", () => 9);
  map.of("c", () => 3);
  assert.equal(map.size, 2);
  assert.equal(
    map.of("a", () => 9),
    1,
  );
  assert.equal(
    map.of("b", () => 9),
    9,
  );
});
