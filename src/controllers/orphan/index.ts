export { Sweeps } from "./memory.ts";
export { orphanName } from "./orphan-name.ts";
export { reconcileOrphan } from "./reconcile.ts";
export { blockedId, reconcileSweep, sweepFor } from "./sweep.ts";
export { sweepTroubleOf } from "./trouble.ts";
export type { OrphanCache, OrphanDeps } from "./turn.ts";
