export { plannedSteps, runHistory, runHistoryAlone } from "./history.ts";
export type { HistoryResult } from "./history.ts";
export { notYet } from "./not-yet.ts";
export { laws } from "./violation.ts";
export { anyFirstSeed } from "./setting.ts";
export { shrink } from "./shrink.ts";
export { runSeeds } from "./run-seeds.ts";
export type { SeedsProgress, SeedsResult } from "./run-seeds.ts";
