export { annotationToken, isRetryAsked } from "./annotation-token.ts";
export {
  epochRetryMs,
  heldLookMs,
  isGivenUp,
  judgeFailure,
  retryWaitMs,
  type Verdict,
} from "./attempts.ts";
export {
  declarationDigest,
  failedBefore,
  failedStepsOf,
  failedTimes,
  failureAgain,
  heldMs,
  heldStep,
  refusedPolicy,
  withFailed,
  type CountingObject,
  type FailedStep,
} from "./failed-steps.ts";
export { holders } from "./holders.ts";
export { keptUntilTold, withoutSlots } from "./kept-record.ts";
export { OperationMemory } from "./memory.ts";
export {
  blockedWaitMs,
  cancelOperation,
  freeSlot,
  pauseMs,
  performOperation,
  type FailedOperation,
  type Performed,
  type PlannedOperation,
} from "./perform.ts";
export {
  ageMs,
  isSameOperation,
  keyOf,
  openUnknownRecord,
  type OperationRecord,
} from "./record.ts";
export {
  pollMs,
  resumeOperation,
  type OpenHolder,
  type OpenOperations,
  type OperationDeps,
  type RecallOf,
  type Resumed,
  type StepTraits,
  type Subject,
} from "./resume.ts";
export { isDone, isOpen, type Settlement } from "./settle.ts";
export { TaskPace, unconfirmedMs } from "./task-pace.ts";
