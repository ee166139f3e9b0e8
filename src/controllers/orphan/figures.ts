import type { Orphan } from "../../api/index.ts";
import type { Metrics } from "../../runtime/index.ts";
import type { Find } from "./find.ts";

/** Numbers about orphans, for monitoring. */
export interface OrphanFigures {
  /** What there is on a hypervisor after a sweep. */
  count(hypervisor: string, orphans: readonly Orphan[], finds: ReadonlyMap<string, Find>): void;
  suspicious(hypervisor: string, isSuspicious: boolean): void;
  reclaimed(hypervisor: string, bytes: number): void;
  forget(hypervisor: string): void;
}

const kinds = ["Machine", "Husk", "Volume", "Snapshot", "ISO", "Image", "Lock"] as const;

export function orphanFigures(metrics: Metrics): OrphanFigures {
  const labels = ["hypervisor", "kind"] as const;
  const things = metrics.gauge({
    name: "berth_orphans",
    help: "Orphans that a person has not decided about.",
    labels,
  });
  const bytes = metrics.gauge({
    name: "berth_orphan_bytes",
    help: "The space that Orphans take.",
    labels,
  });
  const suspicious = metrics.gauge({
    name: "berth_sweep_suspicious",
    help: "1 while a sweep saw suddenly much less than the one before, and some time after.",
    labels: ["hypervisor"],
  });
  const reclaimed = metrics.counter({
    name: "berth_orphan_reclaimed_bytes_total",
    help: "The space that was freed by destroying Orphans.",
    labels: ["hypervisor"],
  });
  const set = (
    hypervisor: string,
    orphans: readonly Orphan[],
    finds: ReadonlyMap<string, Find>,
  ): void => {
    for (const kind of kinds) {
      const here = orphans.filter(({ spec }) => spec.kind === kind && spec.decision !== "Keep");
      const sizes = here.map(({ metadata }) => finds.get(metadata.name ?? "")?.sizeBytes ?? 0);
      things.set({ hypervisor, kind }, here.length);
      bytes.set(
        { hypervisor, kind },
        sizes.reduce((sum, size) => sum + size, 0),
      );
    }
  };
  return {
    count: set,
    suspicious: (hypervisor, is) => suspicious.set({ hypervisor }, is ? 1 : 0),
    reclaimed: (hypervisor, amount) => reclaimed.add({ hypervisor }, amount),
    forget: (hypervisor) => {
      set(hypervisor, [], new Map());
      suspicious.set({ hypervisor }, 0);
    },
  };
}
