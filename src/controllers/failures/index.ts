export { defined } from "./defined.ts";
export { describeFailure, type FailureMoment, type StatusFailure } from "./describe-failure.ts";
