import type { Hypervisor, VirtualMachine } from "../api/index.ts";
import type { Informer } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import {
  ownObjects,
  relatedObjects,
  type ControllerOptions,
  type EventRecorder,
  type Source,
} from "../runtime/index.ts";
import type { Ledger } from "./claims/index.ts";
import type { Connections } from "./hypervisor/index.ts";
import type { Informers, WrittenKinds } from "./informers.ts";
import type { Meters } from "./meters.ts";
import type { OperationDeps } from "./operations/index.ts";
import type { ControllersOptions } from "./options.ts";
import {
  blockedId,
  reconcileOrphan,
  reconcileSweep,
  sweepFor,
  type OrphanCache,
  type OrphanDeps,
  type Sweeps,
} from "./orphan/index.ts";
import type { Reports } from "./reports/index.ts";
import { forbidden, namedVolumes } from "./virtual-machine/index.ts";
import { fileNameOf } from "./vm-image/index.ts";

/** What the controllers of a term share, as far as orphans need it. */
export interface OrphanSurroundings {
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly events: EventRecorder;
  readonly sweeps: Sweeps;
  readonly written: Pick<WrittenKinds, "hypervisors" | "orphans">;
  readonly operations: OperationDeps;
  readonly reports: Reports;
  readonly wakeOrphan: (name: string) => void;
  /** Who failed because of what is destroyed now looks again. */
  readonly destroyed: (hypervisor: string, externalId: string) => void;
}

/** What a term stands on, as far as orphans need it. */
export interface OrphanGround {
  readonly options: Pick<ControllersOptions, "client" | "clock" | "mayDestroy">;
  readonly informers: Informers;
  readonly meters: Pick<Meters, "orphans">;
}

/** The controllers, and what they remember. */
interface OrphanWork extends Record<"sweep" | "orphan", Work> {
  readonly memory: Map<string, OrphanCache>;
}

type Work = Pick<ControllerOptions, "name" | "sources" | "reconcile">;

/** The two controllers of orphans: one looks for them, one does what was decided. */
export function orphanWork(
  { options, informers, meters }: OrphanGround,
  { wakeOrphan, destroyed, operations, reports, written, ...around }: OrphanSurroundings,
): OrphanWork {
  const { vms, claims, images, orphans } = informers;
  const { hypervisors } = written;
  const { client, clock, mayDestroy = () => Promise.resolve(true) } = options;
  const shared = { ...around, hypervisors, client, clock, figures: meters.orphans };
  const seen = { vms, images, claims, orphans };
  const beganMs = clock.nowMs();
  const sweepDeps = { ...shared, ...seen, wakeOrphan, beganMs, imageFileOf: fileNameOf };
  const memory = new Map<string, OrphanCache>();
  const orphanDeps: OrphanDeps = {
    ...shared,
    orphans: written.orphans,
    sweepFor: (hypervisor: string) => sweepFor(hypervisor, sweepDeps),
    memory,
    operations,
    reports,
    wake: wakeOrphan,
    namedVolumes,
    forbidden: (vm: VirtualMachine, on: Hypervisor) => forbidden(vm, on, new Map()),
    mayDestroy,
    destroyed,
  };
  const complete = [claims, images, orphans].map((informer) => onlyComplete<KubeObject>(informer));
  return {
    memory,
    sweep: {
      name: "sweep",
      sources: [
        ownObjects(informers.hypervisors),
        relatedObjects(vms, waitsFor, blockedId),
        ...complete,
      ],
      reconcile: (key) => reconcileSweep(key, sweepDeps),
    },
    orphan: {
      name: "orphan",
      sources: [ownObjects(orphans), onlyComplete(informers.hypervisors)],
      reconcile: (key) => reconcileOrphan(key, orphanDeps),
    },
  };
}

/** The Hypervisor on which volumes are in the way of a machine. */
function waitsFor(vm: VirtualMachine): string[] {
  return blockedId(vm) === undefined ? [] : [vm.spec.hypervisorRef.name];
}

/** A source without keys: only that it is complete is waited for. */
export function onlyComplete<Read extends KubeObject>({
  synced,
}: Pick<Informer<Read>, "synced">): Source {
  return { synced, keys: () => [], on: () => () => undefined };
}
