export { createMakingTime } from "./making-time.ts";
export { objectMetrics, type Followed, type ObjectMetrics } from "./object-metrics.ts";
export { operationMetrics, type OperationMetrics } from "./operation-metrics.ts";
export { orphanMetrics, type OrphanMetrics } from "./orphan-metrics.ts";
export { placeMetrics, type PlaceMetrics } from "./place-metrics.ts";
export { createReports, type ReportedOperation, type Reports } from "./reports.ts";
export { measureWatchDelay } from "./watch-delay.ts";
