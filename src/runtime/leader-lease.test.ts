import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createClient, type Transport } from "../client/index.ts";
import type { Clock } from "../kernel/clock.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { startLeaderLease, type LeaderLease, type LeaderLeaseOptions } from "./leader-lease.ts";
import { FakeApi, flush, pass, seededRandom, steadyRandom } from "./testing.ts";

const path = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/controllers";
const graceMs = 3_000;

interface Contender {
  readonly lease: LeaderLease;
  readonly story: string[];
  readonly errors: unknown[];
}

function contend(
  api: { transport: Transport },
  clock: Clock,
  changes: Partial<LeaderLeaseOptions> = {},
): Contender {
  const story: string[] = [];
  const errors: unknown[] = [];
  const at = (): number => Math.round(clock.monotonicMs() / 1000);
  const lease = startLeaderLease({
    client: createClient({ transport: api.transport, clock }),
    clock,
    random: steadyRandom,
    namespace: "berth-system",
    name: "controllers",
    identity: "node",
    graceMs,
    whenAbsent: "trust",
    onStarted: ({ safeAfterMs }) =>
      story.push(`started at ${at()}, safe after ${safeAfterMs / 1000}`),
    onStopped: () => void story.push(`stopped at ${at()}`),
    onError: (error) => errors.push(error),
    ...changes,
  });
  return { lease, story, errors };
}

function specOf(api: FakeApi): JsonObject {
  const { spec } = api.find("/leases/controllers");
  assert(spec !== undefined && isJsonObject(spec));
  return spec;
}

/** Somebody writes the record as it is, which gives it another version. */
function touch(api: FakeApi, record: JsonObject): void {
  const { metadata } = record;
  assert(metadata !== undefined && isJsonObject(metadata));
  api.objects.set(path, { ...record, metadata: { ...metadata, resourceVersion: "touched" } });
}

describe("a contender for the lease", () => {
  test("takes it where there is none, and writes what every Kubernetes tool understands", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease, story } = contend(api, clock);
    await flush();
    assert.deepEqual(story, ["started at 0, safe after 0"]);
    assert.match(lease.identity, /^node_[0-9a-f]{32}$/);
    assert.deepEqual(specOf(api), {
      holderIdentity: lease.identity,
      leaseDurationSeconds: 15,
      acquireTime: "2026-01-02T03:04:05.000000Z",
      renewTime: "2026-01-02T03:04:05.000000Z",
      leaseTransitions: 0,
    });
    await pass(clock, 3_000);
    assert.equal(specOf(api)["renewTime"], "2026-01-02T03:04:07.000000Z");
    assert.equal(specOf(api)["acquireTime"], "2026-01-02T03:04:05.000000Z");
    assert.equal(lease.holder(), lease.identity);
    await pass(clock, 60_000);
    assert.deepEqual(story, ["started at 0, safe after 0"]);
    assert.deepEqual(new Set(api.requests.slice(2)), new Set([`PUT ${path}`]));
    await lease.stop();
  });

  test("may not write at once where there is none, unless something else says it is alone", async () => {
    const clock = new VirtualClock();
    const { lease } = contend(new FakeApi(), clock, { whenAbsent: "wait" });
    await flush();
    assert.equal(lease.isHeld(), true);
    await pass(clock, 17_999);
    assert.equal(lease.mayWrite(), false);
    await pass(clock, 1);
    assert.equal(lease.mayWrite(), true);
    assert.equal(lease.safeAfterMs(), 18_000);
    await lease.stop();
  });

  test("waits while another holds it, and takes it when that one falls silent", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const first = contend(api, clock);
    await pass(clock, 500);
    const second = contend(api, clock, { random: seededRandom(2) });
    await pass(clock, 60_000);
    assert.deepEqual(second.story, []);
    assert.equal(second.lease.safeAfterMs(), undefined);
    assert.equal(second.lease.holder(), first.lease.identity);
    const silent = contend({ transport: () => new Promise(() => undefined) }, clock);
    assert.equal(silent.lease.isHeld(), false);
    // The first one crashes: its record stays, and nobody renews it.
    const record = api.find("/leases/controllers");
    await first.lease.stop();
    touch(api, record);
    const crashedMs = clock.monotonicMs();
    await pass(clock, 30_000);
    const term = /^started at (\d+), safe after ([\d.]+)$/.exec(second.story[0] ?? "");
    assert(term, second.story.join());
    assert(Number(term[1]) * 1000 >= crashedMs + 15_000);
    assert(Number(term[2]) * 1000 >= crashedMs + 15_000 + graceMs);
    assert.equal(specOf(api)["leaseTransitions"], 1);
    await Promise.all([second.lease.stop(), silent.lease.stop()]);
  });

  test("releases it when stopped, and the next one takes it but keeps the grace", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const first = contend(api, clock);
    await flush();
    const second = contend(api, clock, { random: seededRandom(2) });
    await pass(clock, 5_000);
    await first.lease.stop();
    assert.deepEqual(first.story, ["started at 0, safe after 0", "stopped at 5"]);
    assert.equal(first.lease.isHeld(), false);
    assert.equal(specOf(api)["holderIdentity"], "");
    await pass(clock, 2_500);
    assert.equal(second.lease.isHeld(), true);
    assert.equal(second.lease.mayWrite(), false);
    await pass(clock, 1_000 + graceMs);
    assert.equal(second.lease.mayWrite(), true);
    await second.lease.stop();
    assert.equal(clock.timers, 0);
  });

  test("passes on what it had to wait for itself, if it is stopped before it may write", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease } = contend(api, clock, { whenAbsent: "wait" });
    await pass(clock, 4_000);
    await lease.stop();
    assert.equal(specOf(api)["leaseDurationSeconds"], 14);
    const next = contend(api, clock);
    await flush();
    assert.equal(next.lease.isHeld(), true);
    assert.equal(next.lease.safeAfterMs(), 4_000 + 14_000 + graceMs);
    await next.lease.stop();
  });

  test("keeps it while those who rest on it finish, then lets go", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const finish = Promise.withResolvers<void>();
    const { lease } = contend(api, clock, { onStopped: () => finish.promise });
    await flush();
    const stopping = lease.stop();
    await pass(clock, 60_000);
    assert.equal(lease.mayWrite(), true);
    finish.resolve();
    await stopping;
    assert.equal(lease.mayWrite(), false);
    assert.equal(specOf(api)["holderIdentity"], "");
    await lease.stop();
  });

  for (const fault of ["away", "refuses", "loses the reply", "breaks after doing it"] as const) {
    test(`stops believing in it when the server ${fault}, and comes back`, async () => {
      const api = new FakeApi();
      const clock = new VirtualClock();
      const { lease, story, errors } = contend(api, clock);
      await pass(clock, 2_000);
      api.fault = fault;
      await pass(clock, 9_999);
      assert.equal(lease.isHeld(), true);
      await pass(clock, 1);
      assert.equal(lease.isHeld(), false);
      await flush();
      assert.equal(story.at(-1), "stopped at 12");
      assert(errors.length > 0);
      api.fault = "none";
      await pass(clock, 3_000);
      // Nobody else had it meanwhile, so there is nobody to wait for.
      assert.match(story.at(-1) ?? "", /^started at 1[34], safe after 0$/);
      assert.equal(lease.mayWrite(), true);
      await lease.stop();
    });
  }

  test("stops in time although a renewal hangs", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    let hangs = false;
    const transport: Transport = (request) => {
      return hangs ? new Promise(() => undefined) : api.transport(request);
    };
    const { lease, story } = contend({ transport }, clock);
    await flush();
    hangs = true;
    await pass(clock, 10_000);
    assert.deepEqual(story, ["started at 0, safe after 0", "stopped at 10"]);
    const stopping = lease.stop();
    await pass(clock, 20_000);
    await stopping;
    assert.equal(clock.timers, 0);
  });

  test("counts from when it asked, not from when the answer came", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const transport: Transport = (request) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      clock.after(1_500, () => resolve());
      return promise.then(() => api.transport(request));
    };
    const { lease } = contend({ transport }, clock, { retryMs: 4_000 });
    await pass(clock, 3_000);
    assert.equal(lease.isHeld(), true);
    assert.equal(lease.isHeld(11_499), true);
    assert.equal(lease.isHeld(11_500), false);
    const stopping = lease.stop();
    await pass(clock, 5_000);
    await stopping;
  });

  test("does not believe in it after the machine slept, though its clock stood still", async () => {
    const clock = new VirtualClock();
    let sleptMs = 0;
    const sleepy: Clock = {
      nowMs: () => clock.nowMs() + sleptMs,
      monotonicMs: () => clock.monotonicMs(),
      bootId: clock.bootId,
      after: (delayMs, callback) => clock.after(delayMs, callback),
    };
    const { lease } = contend(new FakeApi(), sleepy);
    await flush();
    sleptMs = 10_000;
    assert.equal(lease.isHeld(), false);
    await lease.stop();
  });

  test("gives way when the Lease is deleted under it, and starts over", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease, story } = contend(api, clock, { whenAbsent: "wait" });
    await pass(clock, 19_000);
    assert.equal(lease.mayWrite(), true);
    api.objects.clear();
    await pass(clock, 2_000);
    assert.equal(lease.mayWrite(), false);
    await pass(clock, 3_000);
    assert.deepEqual(story.slice(0, 2), ["started at 0, safe after 18", "stopped at 20"]);
    assert.equal(story.length, 3);
    assert.equal(lease.mayWrite(), false);
    await lease.stop();
  });

  test("starts over also where it had lost sight of the Lease before", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease, story } = contend(api, clock);
    await flush();
    api.fault = "loses the reply";
    await pass(clock, 2_000);
    api.fault = "none";
    api.objects.clear();
    await pass(clock, 2_000);
    assert.deepEqual(story.slice(1), ["stopped at 4", "started at 4, safe after 4"]);
    await lease.stop();
  });

  test("waits anew when its creation takes effect long after it was sent", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    let late: (() => void) | undefined;
    const transport: Transport = (request) => {
      if (request.method !== "POST" || late !== undefined) return api.transport(request);
      late = () => void api.handle(request);
      return new Promise(() => undefined);
    };
    const { lease } = contend({ transport }, clock, { whenAbsent: "wait" });
    await flush();
    const other = contend(api, clock, { random: seededRandom(2) });
    await pass(clock, 60_000);
    assert.equal(other.lease.mayWrite(), true);
    // Somebody deletes the Lease, and only then the first request arrives.
    api.objects.clear();
    late?.();
    await pass(clock, 3_000);
    assert.equal(lease.isHeld(), true);
    assert((lease.safeAfterMs() ?? 0) >= 60_000 + 15_000 + graceMs);
    await Promise.all([lease.stop(), other.lease.stop()]);
  });

  test("gives way at once when it sees another holder", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease } = contend(api, clock);
    await flush();
    const record = api.find("/leases/controllers");
    touch(api, { ...record, spec: { ...specOf(api), holderIdentity: "somebody" } });
    await pass(clock, 4_000);
    assert.equal(lease.isHeld(), false);
    assert.equal(lease.holder(), "somebody");
    await lease.stop();
    assert.equal(specOf(api)["holderIdentity"], "somebody");
  });

  test("survives that somebody else edits the Lease without taking it", async () => {
    const api = new FakeApi();
    const clock = new VirtualClock();
    const { lease, story, errors } = contend(api, clock);
    await pass(clock, 3_000);
    touch(api, api.find("/leases/controllers"));
    await pass(clock, 60_000);
    assert.deepEqual([story.length, errors.length, lease.mayWrite()], [1, 0, true]);
    await lease.stop();
  });

  test("refuses times that cannot be safe", () => {
    const clock = new VirtualClock();
    const api = new FakeApi();
    assert.throws(() => contend(api, clock, { durationMs: 1_500 }), /whole seconds/);
    assert.throws(() => contend(api, clock, { validMs: 15_000 }), /retry, then validity/);
  });
});
