import type { Claim, Orphan } from "../../api/index.ts";
import type { Informer } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Gauge, Histogram, Metrics } from "../../runtime/index.ts";
import { isTrue, statusOf } from "./object-status.ts";
import { Tally } from "./tally.ts";
import { Unready } from "./unready.ts";

/** The part of an informer that is needed to count. */
export type Followed = Pick<Informer<KubeObject>, "list" | "on">;

/** Counts objects whenever metrics are read. */
export interface ObjectMetrics {
  /** Counts what these know until the returned function is called; then nothing is shown. */
  follow(informers: readonly Followed[]): () => void;
}

/** From a moment to days. */
const notReadyBuckets = [1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600];

/** Declared once for a program, whatever terms it has. */
export function objectMetrics(metrics: Metrics, clock: Clock): ObjectMetrics {
  const gauges = declareGauges(metrics);
  const readySeconds = metrics.histogram({
    name: "berth_not_ready_seconds",
    help: "How long objects were not Ready before they became so.",
    labels: ["kind"],
    buckets: notReadyBuckets,
  });
  return {
    follow: (informers) => {
      const unready = new Unready();
      const count = (): void => {
        showAll(gauges, informers, { nowMs: clock.nowMs(), unready });
      };
      const unlisten = informers.map((informer) => {
        return timeReadiness(informer, unready, readySeconds);
      });
      const unread = metrics.beforeReading(count);
      return () => {
        unread();
        for (const end of unlisten) end();
        showAll(gauges, [], { nowMs: clock.nowMs(), unready });
      };
    },
  };
}

type Gauges = ReturnType<typeof declareGauges>;

function declareGauges(metrics: Metrics) {
  const gauge = <const Label extends string>(
    name: string,
    help: string,
    labels: readonly Label[],
  ): Gauge<Label> => metrics.gauge({ name, help, labels });
  return {
    objects: gauge("berth_objects", "Objects, by kind.", ["kind"]),
    conditions: gauge("berth_conditions", "Objects, by what a condition of theirs says.", [
      "kind",
      "condition",
      "status",
    ]),
    notReady: gauge(
      "berth_not_ready_oldest_seconds",
      "For how long the longest has not been Ready, by the reason. What is paused does not count.",
      ["kind", "reason"],
    ),
    failing: gauge("berth_failing_objects", "Objects with a failure in their status.", [
      "kind",
      "category",
      "stalled",
    ]),
    failingOldest: gauge(
      "berth_failing_oldest_seconds",
      "How long ago the oldest failure that still stands began.",
      ["kind", "category", "stalled"],
    ),
    operations: gauge("berth_operations_open", "Operations under way, by step.", ["kind", "step"]),
    operationOldest: gauge(
      "berth_operation_oldest_seconds",
      "How long ago the oldest operation that is under way began.",
      ["kind", "step"],
    ),
    waiting: gauge("berth_waiting_objects", "Objects that wait, by what they wait for.", [
      "kind",
      "for",
    ]),
    waitingOldest: gauge(
      "berth_waiting_oldest_seconds",
      "How long the longest has been waiting, by what it waits for.",
      ["kind", "for"],
    ),
    orphans: gauge("berth_orphans", "Things on hypervisors that nothing declares.", [
      "hypervisor",
      "kind",
      "ownership",
      "decision",
    ]),
    orphanBytes: gauge("berth_orphan_bytes", "The space that orphans take.", [
      "hypervisor",
      "kind",
      "ownership",
      "decision",
    ]),
    claims: gauge("berth_claims", "Claims, by what they are for and state.", ["target", "state"]),
    up: gauge("berth_hypervisor_up", "Whether a Hypervisor can be used: 1 or 0.", ["hypervisor"]),
  };
}

/** What is counted against. */
interface Moment {
  readonly nowMs: number;
  readonly unready: Unready;
}

function showAll(gauges: Gauges, informers: readonly Followed[], moment: Moment): void {
  const tallies = talliesOf(gauges);
  for (const informer of informers) {
    for (const object of informer.list()) countObject(tallies, object, moment);
  }
  for (const tally of Object.values(tallies)) tally.show();
}

type Tallies = ReturnType<typeof talliesOf>;

function talliesOf(gauges: Gauges) {
  return {
    objects: new Tally(gauges.objects),
    conditions: new Tally(gauges.conditions),
    notReady: new Tally(gauges.notReady),
    failing: new Tally(gauges.failing),
    failingOldest: new Tally(gauges.failingOldest),
    operations: new Tally(gauges.operations),
    operationOldest: new Tally(gauges.operationOldest),
    waiting: new Tally(gauges.waiting),
    waitingOldest: new Tally(gauges.waitingOldest),
    orphans: new Tally(gauges.orphans),
    orphanBytes: new Tally(gauges.orphanBytes),
    claims: new Tally(gauges.claims),
    up: new Tally(gauges.up),
  };
}

function countObject(tallies: Tallies, object: KubeObject, moment: Moment): void {
  const { kind } = object;
  const { nowMs, unready } = moment;
  tallies.objects.add({ kind });
  for (const { type, status } of statusOf(object).conditions ?? []) {
    tallies.conditions.add({ kind, condition: type, status });
  }
  const age = (time: string): number => Math.max(0, (nowMs - Date.parse(time)) / 1000);
  const notReady = unready.of(object);
  if (notReady !== undefined) {
    tallies.notReady.raise({ kind, reason: notReady.reason }, age(notReady.since));
  }
  countFailure(tallies, object, age);
  countWork(tallies, object, age);
  switch (kind) {
    case "Orphan":
      return countOrphan(tallies, object);
    case "Claim":
      return tallies.claims.add(claimLabels(object));
    case "Hypervisor":
      return countHypervisor(tallies, object);
  }
}

type Age = (time: string) => number;

function countFailure(tallies: Tallies, object: KubeObject, age: Age): void {
  const { kind } = object;
  const { failure } = statusOf(object);
  if (failure === undefined) return;
  const labels = { kind, category: failure.category, stalled: String(isTrue(object, "Stalled")) };
  tallies.failing.add(labels);
  tallies.failingOldest.raise(labels, age(failure.firstAt));
}

function countWork(tallies: Tallies, object: KubeObject, age: Age): void {
  const { kind } = object;
  const { operation, waitingFor } = statusOf(object);
  if (waitingFor !== undefined) {
    const labels = { kind, for: waitingFor.kind };
    tallies.waiting.add(labels);
    tallies.waitingOldest.raise(labels, age(waitingFor.since));
  }
  if (operation === undefined) return;
  tallies.operations.add({ kind, step: operation.step });
  tallies.operationOldest.raise({ kind, step: operation.step }, age(operation.since));
}

function countHypervisor(tallies: Tallies, object: KubeObject): void {
  const { name: hypervisor = "" } = object.metadata;
  tallies.up.add({ hypervisor }, isTrue(object, "Ready") ? 1 : 0);
}

function countOrphan(tallies: Tallies, object: KubeObject): void {
  // cast: the server admits nothing else as an Orphan.
  const { spec, status } = object as unknown as Orphan;
  const { ownership = "Unattributed", size, reclaimed } = status ?? {};
  // It is told of for a while, and takes no space any more.
  if (reclaimed !== undefined) return;
  const { hypervisor, kind, decision = "None" } = spec;
  const labels = { hypervisor, kind, ownership, decision };
  tallies.orphans.add(labels);
  tallies.orphanBytes.add(labels, Number(size ?? 0) || 0);
}

function claimLabels(object: KubeObject): { readonly target: string; readonly state: string } {
  // cast: the server admits nothing else as a Claim.
  const { target, state } = (object as unknown as Claim).spec;
  return { target, state };
}

/** Each time that an object becomes Ready, how long it was not. */
function timeReadiness(
  informer: Followed,
  unready: Unready,
  seconds: Histogram<"kind">,
): () => void {
  return informer.on({
    updated: (object, old) => {
      const wasFor = unready.changed(object, old);
      if (wasFor !== undefined) seconds.observe({ kind: object.kind }, wasFor);
    },
    deleted: (old) => unready.gone(old),
  });
}
