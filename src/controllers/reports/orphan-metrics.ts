import type { Metrics } from "../../runtime/index.ts";

/** Numbers about looking for orphans. How many there are is counted with all other objects. */
export interface OrphanMetrics {
  /** Whether the last sweep of a Hypervisor saw suddenly much less than the one before. */
  suspicious(hypervisor: string, isSuspicious: boolean): void;
  /** Space that was freed by destroying orphans. */
  reclaimed(hypervisor: string, bytes: number): void;
  /** A Hypervisor is no longer declared. */
  forget(hypervisor: string): void;
}

/** Declared once for a program, whatever terms it has. */
export function orphanMetrics(metrics: Metrics): OrphanMetrics {
  const labels = ["hypervisor"] as const;
  const suspicious = metrics.gauge({
    name: "berth_sweep_suspicious",
    help: "1 while a sweep saw suddenly much less than the one before, and some time after.",
    labels,
  });
  const reclaimed = metrics.counter({
    name: "berth_orphan_reclaimed_bytes_total",
    help: "The space that was freed by destroying orphans.",
    labels,
  });
  return {
    suspicious: (hypervisor, is) => suspicious.set({ hypervisor }, is ? 1 : 0),
    reclaimed: (hypervisor, bytes) => reclaimed.add({ hypervisor }, bytes),
    forget: (hypervisor) => suspicious.set({ hypervisor }, 0),
  };
}
