export {
  conflictPolicy,
  jittered,
  nextAttempt,
  transientPolicy,
  type NextAttempt,
  type RetryPolicy,
} from "./backoff.ts";
export {
  removeCondition,
  sameStatus,
  setCondition,
  writeStatus,
  type ConditionMoment,
  type ConditionState,
} from "./conditions.ts";
export { controllerMetrics, type ControllerMetrics } from "./controller-metrics.ts";
export { startController, type Controller, type ControllerOptions } from "./controller.ts";
export type { EventType } from "./event-object.ts";
export {
  createEventRecorder,
  type EventDetails,
  type EventRecorder,
  type EventRecorderOptions,
} from "./event-recorder.ts";
export { defaultFailure, type Failure, type FailureReport, type NextStep } from "./failures.ts";
export { addFinalizer, removeFinalizer } from "./finalizers.ts";
export {
  startLeaderLease,
  type LeaderLease,
  type LeaderLeaseOptions,
  type LeaderTerm,
} from "./leader-lease.ts";
export {
  createMetrics,
  metricsContentType,
  secondsBuckets,
  type Counter,
  type Gauge,
  type Histogram,
  type Labels,
  type Metrics,
} from "./metrics.ts";
export { createOutsideTime, type OutsideTime } from "./outside-time.ts";
export { again, settled, stalled, type Outcome } from "./outcome.ts";
export { Slots, type SlotLease, type SlotsOptions, type SlotView } from "./slots.ts";
export { ownObjects, relatedObjects, type Source, type Trigger } from "./source.ts";
export {
  type AddOptions,
  type Priority,
  type QueueHooks,
  type Turn,
  WorkQueue,
} from "./work-queue.ts";
