export { combined } from "./combine.ts";
export { defined } from "./defined.ts";
export {
  describeFailure,
  failureText,
  type FailureMoment,
  type StatusFailure,
} from "./describe-failure.ts";
export { clearingOf, deadLock, lockText, tellsOfLock } from "./locks.ts";
