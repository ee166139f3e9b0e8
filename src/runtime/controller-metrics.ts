import { secondsBuckets, type Metrics } from "./metrics.ts";
import type { QueueHooks } from "./work-queue.ts";

/** What one controller reports of itself. */
export interface ControllerMetrics {
  readonly queue: QueueHooks;
  /** How a run ended: one of the few words of the controller's loop. */
  outcome(label: string): void;
  failure(category: string): void;
  /** How much of a run was our own time: all of it but the waits for hypervisors. */
  own(ownMs: number): void;
}

/** Declares the metrics that all controllers share, and gives each its own by name. */
export function controllerMetrics(metrics: Metrics): (controller: string) => ControllerMetrics {
  const labels = ["controller"] as const;
  const depth = metrics.gauge({
    name: "berth_queue_depth",
    help: "Keys that are ready and not running.",
    labels,
  });
  const wait = metrics.histogram({
    name: "berth_queue_wait_seconds",
    help: "How long a key was ready before it ran.",
    labels,
    buckets: secondsBuckets,
  });
  const work = metrics.histogram({
    name: "berth_reconcile_seconds",
    help: "How long one reconcile took.",
    labels,
    buckets: secondsBuckets,
  });
  const own = metrics.histogram({
    name: "berth_overhead_seconds",
    help: "How long one reconcile took without the time that it waited for hypervisors.",
    labels,
    buckets: secondsBuckets,
  });
  const outcomes = metrics.counter({
    name: "berth_reconcile_total",
    help: "Reconciles, by how they ended.",
    labels: ["controller", "outcome"],
  });
  const failures = metrics.counter({
    name: "berth_reconcile_failures_total",
    help: "Failures of reconciles, by category.",
    labels: ["controller", "category"],
  });
  return (controller) => ({
    queue: {
      depth: (keys) => depth.set({ controller }, keys),
      waited: (waitMs) => wait.observe({ controller }, waitMs / 1000),
      worked: (workMs) => work.observe({ controller }, workMs / 1000),
    },
    outcome: (outcome) => outcomes.add({ controller, outcome }),
    failure: (category) => failures.add({ controller, category }),
    own: (ownMs) => own.observe({ controller }, ownMs / 1000),
  });
}
