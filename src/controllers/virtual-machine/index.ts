export type { Declaration } from "./declaration.ts";
export { desireMachine, type Desired } from "./desired.ts";
export type { Declared, Next, OpenOperation, PlanInput } from "./next.ts";
export { planVm } from "./plan.ts";
export { reconcileVm } from "./reconcile.ts";
export { statusOf, type VmView } from "./status.ts";
export type { Step, StepName } from "./steps.ts";
export { TaskPace } from "./task-pace.ts";
export type { VmDeps, VmLookups, VmMemory } from "./turn.ts";
