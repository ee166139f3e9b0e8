import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../kernel/status.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createClient } from "./client.ts";
import { createInformer, type Informer } from "./informer.ts";
import { versionOf } from "./informer-cache.ts";
import { FakeServer, flush, steadyRandom, widgetKind, type Mood, type Widget } from "./testing.ts";

interface World {
  server: FakeServer;
  clock: VirtualClock;
  informer: Informer<Widget>;
  /** What a handler was told. */
  seen: string[];
  errors: unknown[];
  /** Lets time pass in small steps, and everything happen that then can. */
  readonly pass: (ms: number) => Promise<void>;
}

function watching(server = new FakeServer()): World {
  const clock = new VirtualClock();
  const errors: unknown[] = [];
  const seen: string[] = [];
  const informer = createInformer({
    client: createClient({ transport: server.transport, clock }),
    kind: widgetKind,
    indexes: { size: ({ size }) => [String(size)] },
    clock,
    random: steadyRandom,
    onError: (error) => errors.push(error),
  });
  const label = (object: Widget): string =>
    `${object.metadata.name}@${object.metadata.resourceVersion}`;
  informer.on({
    added: (object) => seen.push(`added ${label(object)}`),
    updated: (object, old) => seen.push(`updated ${label(old)} to ${label(object)}`),
    deleted: (old) => seen.push(`deleted ${label(old)}`),
  });
  const pass = async (ms: number): Promise<void> => {
    const endMs = clock.monotonicMs() + ms;
    await flush();
    while (clock.monotonicMs() < endMs) {
      const leftMs = endMs - clock.monotonicMs();
      clock.advance(Math.min(clock.nextInMs() ?? leftMs, leftMs));
      await flush();
    }
  };
  return { server, clock, informer, seen, errors, pass };
}

function names(informer: Informer<Widget>): string[] {
  return informer
    .list()
    .map(({ metadata }) => metadata.name ?? "")
    .toSorted();
}

test("lists, then follows, and tells its handlers of every change", async () => {
  const server = new FakeServer();
  server.put("a", { size: 1 });
  const world = watching(server);
  const { informer, seen } = world;
  assert.equal(informer.isSynced(), false);
  await informer.synced;
  await flush();
  server.put("b");
  server.put("a", { size: 2 });
  server.remove("b");
  await flush();
  assert.deepEqual(seen, ["added a@1", "added b@2", "updated a@1 to a@3", "deleted b@2"]);
  assert.equal(informer.get("default/a")?.size, 2);
  assert.equal(informer.get("default/b"), undefined);
  assert.deepEqual(informer.byIndex("size", "2").length, 1);
  assert.equal(server.requests.length, 2, "one list and one watch");
  assert.match(server.requests[1] ?? "", /watch=true.*resourceVersion=1&allowWatchBookmarks=true/);
  await informer.stop();
});

test("a handler that comes later begins with what is there, and ends when it wants", async () => {
  const server = new FakeServer();
  server.put("a");
  const { informer } = watching(server);
  await informer.synced;
  const late: string[] = [];
  const off = informer.on({ added: ({ metadata }) => late.push(metadata.name ?? "") });
  assert.deepEqual(late, ["a"]);
  await flush();
  off();
  server.put("b");
  await flush();
  assert.deepEqual(late, ["a"]);
  await informer.stop();
});

test("goes on where it was when the server ends the watch, also after a bookmark", async () => {
  const { server, informer, seen, pass } = watching();
  await informer.synced;
  await flush();
  server.skip(50);
  server.bookmark();
  await pass(2_000);
  server.endWatches();
  await flush();
  assert.match(server.requests.at(-1) ?? "", /watch=true.*resourceVersion=50/);
  server.put("a");
  await flush();
  assert.deepEqual(seen, ["added a@51"]);
  assert.equal(server.requests.filter((request) => !request.includes("watch")).length, 1);
  await informer.stop();
});

test("misses nothing that happened while the connection was lost", async () => {
  const { server, informer, seen, pass } = watching();
  await informer.synced;
  await flush();
  server.put("a");
  await flush();
  server.mood = "away";
  server.endWatches();
  server.put("b");
  server.remove("a");
  await pass(60_000);
  server.mood = "well";
  await pass(30_000);
  assert.deepEqual(seen, ["added a@1", "added b@2", "deleted a@1"]);
  assert.equal(server.requests.filter((request) => !request.includes("watch")).length, 1);
  await informer.stop();
});

for (const how of ["in the middle of a watch", "at its beginning"]) {
  test(`lists anew after a 410 ${how}, and finds what is gone`, async () => {
    const { server, informer, seen, errors, pass } = watching();
    await informer.synced;
    await flush();
    server.put("a");
    server.put("b");
    await pass(2_000);
    if (how === "at its beginning") server.endWatches();
    else server.fail(new ApiError(410, "Expired", "too old").toStatus());
    // What follows an error in a watch is not read.
    server.remove("a");
    server.put("c");
    server.compact();
    await pass(2_000);
    assert.deepEqual(seen, ["added a@1", "added b@2", "deleted a@1", "added c@4"]);
    assert.equal(server.requests.filter((request) => !request.includes("watch")).length, 2);
    assert.equal(errors.length, 1);
    await informer.stop();
  });
}

test("a server that expires every watch is not stormed", async () => {
  const server = new FakeServer();
  const { informer, pass } = watching(server);
  await informer.synced;
  await flush();
  server.fail(new ApiError(410, "Expired", "too old").toStatus());
  const before = server.requests.length;
  for (let i = 0; i < 60; i++) {
    await pass(1_000);
    server.fail(new ApiError(410, "Expired", "too old").toStatus());
  }
  assert.ok(server.requests.length - before < 30, `${server.requests.length - before} requests`);
  await informer.stop();
});

test("waits longer and longer while the server is away, but never long", async () => {
  const server = new FakeServer();
  server.mood = "away";
  const { informer, errors, pass } = watching(server);
  const times: number[] = [];
  for (let minute = 0; minute < 10; minute++) {
    await pass(60_000);
    times.push(server.requests.length);
  }
  assert.ok((times[0] ?? 0) <= 8, "about seven in the first minute");
  const perMinute = (times[9] ?? 0) - (times[8] ?? 0);
  assert.ok(perMinute >= 2 && perMinute <= 3, "then one every half minute at most");
  assert.equal(errors.length, server.requests.length);
  assert.equal(informer.isSynced(), false);
  server.mood = "well";
  await pass(30_000);
  await informer.synced;
  await informer.stop();
});

for (const mood of ["hangs", "refuses", "tears"] satisfies Mood[]) {
  test(`survives a server that ${mood}`, async () => {
    const server = new FakeServer();
    server.put("a");
    server.mood = mood;
    const { informer, clock, errors, pass } = watching(server);
    await pass(45_000);
    assert.equal(informer.isSynced(), false);
    assert.ok(errors.length > 0, "and says so");
    server.mood = "well";
    await pass(61_000);
    await informer.synced;
    assert.deepEqual(names(informer), ["a"]);
    await informer.stop();
    assert.equal(clock.timers, 0);
  });
}

test("takes a watch without a sign of life for dead, and comes again", async () => {
  const { server, informer, seen, pass } = watching();
  await informer.synced;
  await pass(179_000);
  assert.equal(server.requests.length, 2);
  server.bookmark();
  await pass(179_000);
  assert.equal(server.requests.length, 2, "a bookmark is a sign of life");
  await pass(3_000);
  assert.equal(server.requests.length, 3);
  assert.equal(server.watches, 1, "the dead one was left");
  server.put("a");
  await flush();
  assert.deepEqual(seen, ["added a@1"]);
  await informer.stop();
});

test("a server that ends every watch at once is not stormed", async () => {
  const { server, informer, pass } = watching();
  await informer.synced;
  await flush();
  const before = server.requests.length;
  for (let i = 0; i < 600; i++) {
    server.endWatches();
    await pass(100);
  }
  assert.ok(server.requests.length - before < 15, `${server.requests.length - before} requests`);
  await informer.stop();
});

test("does not believe a server that went back in time", async () => {
  const { server, informer, seen, errors, pass } = watching();
  await informer.synced;
  await flush();
  server.skip(100);
  server.put("a");
  await flush();
  server.goBack(10);
  server.fail(new ApiError(410, "Expired", "too old").toStatus());
  await pass(60_000);
  assert.deepEqual(names(informer), ["a"]);
  assert.match(String(errors.at(-1)), /behind what was already seen \(10 after 101\)/);
  server.goBack(200);
  await pass(60_000);
  assert.deepEqual(seen, ["added a@101", "deleted a@101"], "until it has caught up");
  await informer.stop();
});

test("a handler that throws hurts nobody but its owner", async () => {
  const { server, informer, seen } = watching();
  const thrown: unknown[] = [];
  const listen = (error: unknown): void => void thrown.push(error);
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", listen);
  informer.on({
    added: () => {
      throw new Error("a bug");
    },
  });
  await informer.synced;
  await flush();
  server.put("a");
  server.put("b");
  await flush();
  process.removeListener("uncaughtException", listen);
  for (const listener of before) process.on("uncaughtException", listener);
  assert.deepEqual(seen, ["added a@1", "added b@2"]);
  assert.equal(thrown.length, 2);
  await informer.stop();
});

test("ends when it is stopped between its list and its watch", async () => {
  const server = new FakeServer();
  server.put("a");
  const { informer, clock } = watching(server);
  const stopped = new Promise<void>((resolve, reject) => {
    informer.on({ added: () => void informer.stop().then(resolve, reject) });
  });
  await stopped;
  assert.equal(server.watches, 0);
  assert.equal(clock.timers, 0);
});

test("leaves nothing running when it is stopped, whenever that is", async () => {
  for (const mood of ["well", "away", "hangs", "refuses", "tears"] satisfies Mood[]) {
    for (const afterMs of [0, 1, 1_000, 40_000]) {
      const server = new FakeServer();
      server.mood = mood;
      const { informer, clock, pass, seen } = watching(server);
      await pass(afterMs);
      const wasSynced = informer.isSynced();
      await informer.stop();
      await informer.stop();
      assert.equal(clock.timers, 0, `${mood} after ${afterMs} ms`);
      assert.equal(server.watches, 0);
      if (!wasSynced) await assert.rejects(informer.synced, /was stopped/);
      const requests = server.requests.length;
      server.mood = "well";
      server.put("late");
      await pass(120_000);
      assert.equal(server.requests.length, requests);
      assert.deepEqual(seen, []);
    }
  }
});

test("ends up with what the server has, whatever happens to the connection", async () => {
  const act: fc.Arbitrary<Act | { do: "pass"; ms: number }> = fc.oneof(
    fc.record({ do: fc.constant("put" as const), name: fc.constantFrom("a", "b", "c") }),
    fc.record({ do: fc.constant("remove" as const), name: fc.constantFrom("a", "b", "c") }),
    fc.record({
      do: fc.constant("mood" as const),
      mood: fc.constantFrom<Mood>("well", "away", "hangs", "refuses", "tears"),
    }),
    fc.record({ do: fc.constantFrom("end" as const, "compact" as const, "bookmark" as const) }),
    fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 200_000 }) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
      const { server, informer, pass } = watching();
      const newest = new Map<string, bigint>();
      informer.on({ added: (object) => grows(object), updated: (object) => grows(object) });
      for (const step of acts) {
        if (step.do === "pass") await pass(step.ms);
        else happen(server, step);
        await flush();
      }
      server.mood = "well";
      await pass(300_000);
      assert.deepEqual(names(informer), server.names().toSorted());
      await informer.stop();

      function grows(object: Widget): void {
        const name = object.metadata.name ?? "";
        assert.ok(versionOf(object) > (newest.get(name) ?? -1n));
        newest.set(name, versionOf(object));
      }
    }),
    { numRuns: 60 },
  );
});

type Act =
  | { do: "put" | "remove"; name: string }
  | { do: "mood"; mood: Mood }
  | { do: "end" | "compact" | "bookmark" };

function happen(server: FakeServer, act: Act): void {
  switch (act.do) {
    case "put":
      return server.put(act.name);
    case "remove":
      return server.names().includes(act.name) ? server.remove(act.name) : undefined;
    case "mood":
      server.mood = act.mood;
      return;
    case "end":
      return server.endWatches();
    case "compact":
      return server.compact();
    case "bookmark":
      return server.bookmark();
  }
}
