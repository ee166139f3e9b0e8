import { secondsBuckets, type Metrics } from "../../runtime/index.ts";

/** Numbers about operations on hypervisors and their failures. */
export interface OperationMetrics {
  /** From now on the operation's time counts. */
  opened(id: string, nowMs: number): void;
  ended(kind: string, end: OperationEnd, nowMs: number): void;
  failed(kind: string, category: string): void;
  retried(kind: string, category: string): void;
}

export interface OperationEnd {
  readonly id: string;
  readonly step: string;
  readonly outcome: string;
}

/** Copies and downloads take their time. */
const operationBuckets = [...secondsBuckets, 900, 3600];
/** Operations whose beginning is remembered. Of more than that, the oldest have no duration. */
const openMax = 4096;
/** What became of the task is what became of the operation. */
const outcomes: Readonly<Record<string, string>> = { succeeded: "done", warned: "done" };

/** Declared once for a program, whatever terms it has. */
export function operationMetrics(metrics: Metrics): OperationMetrics {
  const begunMs = new Map<string, number>();
  const operations = metrics.counter({
    name: "berth_operations_total",
    help: "Operations on hypervisors, by step and by what became of them.",
    labels: ["kind", "step", "outcome"],
  });
  const seconds = metrics.histogram({
    name: "berth_operation_seconds",
    help: "How long operations took from the request to their end, tasks included.",
    labels: ["kind", "step"],
    buckets: operationBuckets,
  });
  const failures = metrics.counter({
    name: "berth_failures_total",
    help: "Failures of objects, by category: each attempt, and each wait when it begins.",
    labels: ["kind", "category"],
  });
  const retries = metrics.counter({
    name: "berth_retries_total",
    help: "Further attempts that were scheduled after a failure, by its category.",
    labels: ["kind", "category"],
  });
  return {
    opened: (id, nowMs) => {
      begunMs.set(id, nowMs);
      if (begunMs.size > openMax) forgetOldest(begunMs);
    },
    ended: (kind, { id, step, outcome: state }, nowMs) => {
      operations.add({ kind, step, outcome: outcomes[state] ?? state });
      const startMs = begunMs.get(id);
      // A lost reply is no end: what became of it is found out by looking.
      if (startMs === undefined || state === "unknown") return;
      begunMs.delete(id);
      seconds.observe({ kind, step }, (nowMs - startMs) / 1000);
    },
    failed: (kind, category) => failures.add({ kind, category }),
    retried: (kind, category) => retries.add({ kind, category }),
  };
}

function forgetOldest(begunMs: Map<string, number>): void {
  const oldest = begunMs.keys().next();
  if (!oldest.done) begunMs.delete(oldest.value);
}
