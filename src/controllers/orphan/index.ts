export { Sweeps } from "./memory.ts";
export { orphanName } from "./orphan-name.ts";
export { reconcileOrphan } from "./reconcile.ts";
export { blockedId, reconcileSweep } from "./sweep.ts";
export type { OrphanDeps, OrphanMemory } from "./turn.ts";
