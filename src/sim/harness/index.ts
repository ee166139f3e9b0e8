export { plannedSteps, runHistory, runHistoryAlone } from "./history.ts";
export type { HistoryResult } from "./history.ts";
export { laws } from "./violation.ts";
export { shrink } from "./shrink.ts";
export { runSeeds } from "./run-seeds.ts";
export type { SeedsProgress, SeedsResult } from "./run-seeds.ts";
