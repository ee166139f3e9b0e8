import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Informer, InformerHandler } from "../client/index.ts";
import { objectKey, type KubeObject } from "../kernel/object.ts";
import { ApiError } from "../kernel/status.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { transientPolicy } from "./backoff.ts";
import { controllerMetrics } from "./controller-metrics.ts";
import { startController, type ControllerOptions } from "./controller.ts";
import type { FailureReport } from "./failures.ts";
import { createMetrics } from "./metrics.ts";
import { again, settled, stalled, type Outcome } from "./outcome.ts";
import { ownObjects, relatedObjects } from "./source.ts";
import { flush, pass, steadyRandom } from "./testing.ts";

type Answer = Outcome | Error;

const minuteMs = 60_000;

/** An informer whose objects the test puts there. */
function fakeInformer(...names: string[]) {
  const objects = new Map<string, KubeObject>();
  const handlers = new Set<InformerHandler<KubeObject>>();
  const synced = Promise.withResolvers<void>();
  let isSynced = false;
  const put = (name: string, fields: object = {}, metadata: object = {}): void => {
    const object = {
      apiVersion: "berth.dev/v1",
      kind: "Widget",
      metadata: { namespace: "default", name, ...metadata },
      ...fields,
    };
    const key = objectKey(object.metadata);
    const old = objects.get(key);
    objects.set(key, object);
    for (const handler of handlers) {
      if (old === undefined) handler.added?.(object);
      else handler.updated?.(object, old);
    }
  };
  const remove = (name: string): void => {
    const old = objects.get(`default/${name}`);
    assert(old);
    objects.delete(`default/${name}`);
    for (const handler of handlers) handler.deleted?.(old);
  };
  const sync = (): void => {
    for (const name of names) put(name);
    isSynced = true;
    synced.resolve();
  };
  const informer: Informer<KubeObject> = {
    get: (key) => objects.get(key),
    list: () => [...objects.values()],
    byIndex: () => [],
    synced: synced.promise,
    isSynced: () => isSynced,
    on: (handler) => {
      handlers.add(handler);
      for (const object of objects.values()) handler.added?.(object);
      return () => void handlers.delete(handler);
    },
    stop: async () => undefined,
  };
  return { informer, put, remove, sync, handlers };
}

/** A controller that answers as told; without more to say it is settled. */
function open(answers: Answer[] = [], changes: Partial<ControllerOptions> = {}) {
  const clock = new VirtualClock();
  const widgets = fakeInformer("a");
  const runs: string[] = [];
  const reports: FailureReport[] = [];
  const errors: unknown[] = [];
  const metrics = createMetrics();
  const controller = startController({
    name: "widget",
    sources: [ownObjects(widgets.informer)],
    reconcile: async (key) => {
      runs.push(`${key} at ${clock.monotonicMs() / 1000}`);
      const answer = answers.shift() ?? settled;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    reportFailure: async (report) => void reports.push(report),
    onError: (error) => errors.push(error),
    metrics: controllerMetrics(metrics)("widget"),
    clock,
    random: steadyRandom,
    resyncMs: 24 * 60 * minuteMs,
    ...changes,
  });
  const text = (): Promise<string> => metrics.text();
  return { clock, widgets, runs, reports, errors, controller, text };
}

describe("a controller", () => {
  test("goes on to the next step also where nobody counts", async () => {
    const clock = new VirtualClock();
    const widgets = fakeInformer("a");
    const answers = [again("Created"), again("Waiting", 500)];
    let runs = 0;
    startController({
      name: "widget",
      sources: [ownObjects(widgets.informer)],
      reconcile: async () => {
        runs += 1;
        return answers.shift() ?? settled;
      },
      clock,
      random: steadyRandom,
    });
    widgets.sync();
    await flush();
    assert.equal(runs, 2);
    await pass(clock, 600);
    assert.equal(runs, 3);
  });

  test("goes on with what is under way before it begins with what is new", async () => {
    const clock = new VirtualClock();
    const widgets = fakeInformer();
    const waits: Record<string, number> = { polls: 100, steps: 0, fails: 30_000 };
    const runs: string[] = [];
    startController({
      name: "widget",
      sources: [ownObjects(widgets.informer)],
      reconcile: async (key) => {
        const name = key.replace("default/", "");
        const isFirst = !runs.includes(name);
        runs.push(name);
        const waitMs = waits[name];
        return isFirst && waitMs !== undefined ? again("Once", waitMs) : settled;
      },
      clock,
      random: steadyRandom,
      concurrency: 1,
    });
    widgets.sync();
    await flush();
    for (const name of ["polls", "fails"]) widgets.put(name);
    await flush();
    runs.splice(0, runs.length, ...Object.keys(waits).filter((name) => name !== "steps"));
    // Both become ready in the moment in which others are new.
    clock.advance(30_000);
    for (const name of ["steps", "new"]) widgets.put(name);
    await flush();
    assert.deepEqual(runs.slice(2), ["polls", "fails", "steps", "steps", "new"]);
  });

  test("begins when its sources are complete, with everything there is", async () => {
    const { widgets, runs, controller } = open();
    widgets.put("early");
    await flush();
    assert.deepEqual(runs, []);
    widgets.sync();
    await controller.started;
    await flush();
    assert.deepEqual(runs, ["default/early at 0", "default/a at 0"]);
  });

  test("looks at what was edited, created or deleted", async () => {
    const { widgets, runs } = open();
    widgets.sync();
    await flush();
    widgets.put("a", { spec: { size: 2 } });
    await flush();
    widgets.put("b");
    await flush();
    widgets.put("b", {}, { deletionTimestamp: "2026-01-02T03:04:05Z" });
    await flush();
    widgets.remove("b");
    await flush();
    const keys = runs.map((run) => run.slice("default/".length, -" at 0".length));
    assert.deepEqual(keys, ["a", "a", "b", "b", "b"]);
  });

  test("does not look again because of a status that it wrote itself", async () => {
    const { widgets, runs } = open();
    widgets.sync();
    await flush();
    widgets.put("a", { status: { ready: true } }, { resourceVersion: "7" });
    await flush();
    assert.equal(runs.length, 1);
  });

  test("looks at what depends on an object of another kind, before and after a change", async () => {
    const images = fakeInformer();
    const usersOf = (image: KubeObject): string[] => [String(image["user"])];
    images.put("image", { user: "default/a" });
    const { runs } = open([], { sources: [relatedObjects(images.informer, usersOf)] });
    images.sync();
    await flush();
    images.put("image", { user: "default/b" });
    await flush();
    images.remove("image");
    await flush();
    const keys = runs.map((run) => run.slice("default/".length, -" at 0".length));
    assert.deepEqual(keys, ["a", "a", "b", "b"]);
  });

  test("looks at what depends on another object only when the part that matters changes", async () => {
    const images = fakeInformer();
    const usersOf = (): string[] => ["default/a"];
    const partOf = (image: KubeObject): unknown => image["place"];
    images.put("image", { place: "here", status: 1 });
    const { runs } = open([], { sources: [relatedObjects(images.informer, usersOf, partOf)] });
    images.sync();
    await flush();
    images.put("image", { place: "here", status: 2 });
    await flush();
    assert.equal(runs.length, 1, "a status that does not matter");
    images.put("image", { place: "there", status: 2 });
    await flush();
    assert.equal(runs.length, 2, "the part that matters");
  });

  test("steps on at once, waits as long as told, and rests when settled", async () => {
    const { clock, widgets, runs } = open([again("Claimed"), again("Copying", 1_000), settled]);
    widgets.sync();
    await pass(clock, 60 * minuteMs);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 0", "default/a at 1"]);
  });

  test("slows down a plan that never sees its own effect", async () => {
    const endless = Array.from({ length: 70 }, () => again("Stuck"));
    const { clock, widgets, runs } = open(endless);
    widgets.sync();
    await flush();
    assert.equal(runs.length, 51);
    await pass(clock, 3_000);
    assert.equal(runs.length, 54);
  });

  test("tries again after a failure, by the table, and forgets it with success", async () => {
    const failure = new Error("no route to host");
    const { clock, widgets, runs, reports, errors, controller } = open([
      failure,
      failure,
      settled,
      failure,
      settled,
    ]);
    widgets.sync();
    await pass(clock, 60 * minuteMs);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 30", "default/a at 90"]);
    controller.enqueue("default/a");
    await pass(clock, minuteMs);
    assert.deepEqual(runs.slice(3), ["default/a at 3600", "default/a at 3630"]);
    assert.deepEqual(
      reports.map(({ attempts, next }) => [attempts, next.type === "retry" && next.afterMs]),
      [
        [1, 30_000],
        [2, 60_000],
        [1, 30_000],
      ],
    );
    assert.equal(errors[0], failure);
    assert.equal(
      reports[0]?.next.type === "retry" && reports[0].next.atMs,
      clock.nowMs() - 3_630_000,
    );
  });

  test("burns no attempt by waiting, and keeps count of a failure across progress", async () => {
    const failure = new Error("creation failed");
    const { clock, widgets, reports } = open([
      failure,
      again("Waiting", 10),
      again("Created"),
      failure,
      settled,
    ]);
    widgets.sync();
    await pass(clock, 10 * minuteMs);
    assert.deepEqual(
      reports.map(({ attempts }) => attempts),
      [1, 2],
    );
  });

  test("gives up after the same failure five times, also with others in between", async () => {
    const creation = (): Error => new Error("creation failed");
    const { clock, widgets, runs, reports, text } = open(
      [creation(), creation(), new Error("net"), creation(), creation(), creation(), settled],
      {
        classify: (error) => {
          if (!(error instanceof Error) || error.message === "net") return undefined;
          return { category: "CreationFailed", policy: { ...transientPolicy, attemptsMax: 5 } };
        },
      },
    );
    widgets.sync();
    await pass(clock, 24 * 60 * minuteMs);
    assert.equal(runs.length, 6);
    assert.deepEqual(reports.at(-1)?.next, { type: "stall" });
    assert.match(await text(), /failures_total\{controller="widget",category="CreationFailed"\} 5/);
    assert.match(await text(), /reconcile_total\{controller="widget",outcome="gave_up"\} 1/);
  });

  test("does not try again what gave up or backs off because of a resync", async () => {
    const classify = () => ({ category: "X", policy: { ...transientPolicy, attemptsMax: 2 } });
    const bad = new Error("bad");
    const { clock, widgets, runs } = open([bad, bad, bad], { classify, resyncMs: 10_000 });
    widgets.sync();
    await pass(clock, 24 * minuteMs);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 30"]);
  });

  test("looks at what is stalled by its plan at every resync", async () => {
    const answers = [stalled("Missing"), stalled("Missing"), settled];
    const { clock, widgets, runs } = open(answers, { resyncMs: 10_000 });
    widgets.sync();
    await pass(clock, 9_999);
    assert.equal(runs.length, 1);
    await pass(clock, 20_001);
    assert.deepEqual(runs, [
      "default/a at 0",
      "default/a at 10",
      "default/a at 20",
      "default/a at 30",
    ]);
  });

  test("looks at it at every resync also where a failure came before", async () => {
    const answers = [new Error("bad"), stalled("Missing")];
    const { clock, widgets, runs } = open(answers, { resyncMs: 45_000 });
    widgets.sync();
    await pass(clock, 60_000);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 30", "default/a at 45"]);
  });

  test("gives what was edited all its attempts, and what merely woke up only one more", async () => {
    const classify = () => ({ category: "X", policy: { ...transientPolicy, attemptsMax: 2 } });
    const bad = new Error("bad");
    const { clock, widgets, runs, controller } = open(Array(9).fill(bad), { classify });
    widgets.sync();
    await pass(clock, 5 * minuteMs);
    assert.equal(runs.length, 2);
    controller.wake("default/a");
    await pass(clock, 5 * minuteMs);
    assert.equal(runs.length, 3);
    widgets.put("a", { spec: 1 });
    await pass(clock, 5 * minuteMs);
    assert.equal(runs.length, 5);
  });

  test("looks again soon after a lost race, and tells nobody", async () => {
    const conflict = new ApiError(409, "Conflict", "modified");
    const { clock, widgets, runs, reports, errors } = open([conflict, conflict, settled]);
    widgets.sync();
    await pass(clock, 1_000);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 0.02", "default/a at 0.07"]);
    assert.deepEqual([reports, errors], [[], []]);
  });

  test("goes by the table also where the failure cannot be told", async () => {
    const reportFailure = async (): Promise<void> => {
      throw new Error("no status either");
    };
    const { clock, widgets, runs, errors } = open([new Error("bad"), settled], { reportFailure });
    widgets.sync();
    await pass(clock, minuteMs);
    assert.deepEqual(runs, ["default/a at 0", "default/a at 30"]);
    assert.deepEqual(errors.map(String), ["Error: bad", "Error: no status either"]);
  });

  test("waits for what runs when it is stopped, and leaves nothing behind", async () => {
    const ending = Promise.withResolvers<Outcome>();
    const { clock, widgets, controller } = open([], { reconcile: () => ending.promise });
    widgets.sync();
    await flush();
    let isStopped = false;
    const stopping = controller.stop().then(() => (isStopped = true));
    await flush();
    assert.equal(isStopped, false);
    ending.resolve(again("Step"));
    await stopping;
    await pass(clock, 60 * minuteMs);
    assert.equal(clock.timers, 0);
    assert.equal(widgets.handlers.size, 0);
  });

  test("says that it never started if it is stopped before", async () => {
    const { widgets, controller, runs } = open();
    await controller.stop();
    widgets.sync();
    await assert.rejects(controller.started, /widget was stopped before it started/);
    assert.deepEqual(runs, []);
  });

  test("labels every end", async () => {
    const answers = [again("A"), again("B", 1), new Error("x"), stalled("S")];
    const { clock, widgets, text } = open(answers);
    widgets.sync();
    await pass(clock, minuteMs);
    widgets.put("a", { spec: 1 });
    await flush();
    for (const outcome of ["again", "wait", "retry", "stalled", "settled"]) {
      assert.match(await text(), new RegExp(`controller="widget",outcome="${outcome}"\\} 1\n`));
    }
  });
});
