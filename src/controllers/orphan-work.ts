import type { Hypervisor, VirtualMachine } from "../api/index.ts";
import type { Informer } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import {
  ownObjects,
  relatedObjects,
  type ControllerOptions,
  type EventRecorder,
  type Slots,
  type Source,
} from "../runtime/index.ts";
import { WrittenObjects, type Ledger } from "./claims/index.ts";
import type { Connections } from "./hypervisor/index.ts";
import type { Informers } from "./informers.ts";
import type { Meters } from "./meters.ts";
import type { ControllersOptions } from "./options.ts";
import {
  blockedId,
  reconcileOrphan,
  reconcileSweep,
  type OrphanDeps,
  type OrphanMemory,
  type Sweeps,
} from "./orphan/index.ts";
import { forbidden, namedVolumes } from "./virtual-machine/index.ts";
import { fileNameOf } from "./vm-image/index.ts";

/** What the controllers of a term share, as far as orphans need it. */
export interface OrphanSurroundings {
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly events: EventRecorder;
  readonly sweeps: Sweeps;
  readonly slots: Slots;
  readonly wakeOrphan: (name: string) => void;
  /** Who failed because of what is destroyed now looks again. */
  readonly destroyed: (hypervisor: string, externalId: string) => void;
}

/** What a term stands on, as far as orphans need it. */
export interface OrphanGround {
  readonly options: Pick<ControllersOptions, "client" | "clock" | "random" | "mayDestroy">;
  readonly informers: Informers;
  readonly mayWrite: () => boolean;
  readonly meters: Pick<Meters, "orphans">;
}

type Work = Pick<ControllerOptions, "name" | "sources" | "reconcile">;

/** The two controllers of orphans: one looks for them, one does what was decided. */
export function orphanWork(
  { options, informers, mayWrite, meters }: OrphanGround,
  { wakeOrphan, destroyed, slots, ...around }: OrphanSurroundings,
): Record<"sweep" | "orphan", Work> {
  const { vms, hypervisors, claims, images, orphans } = informers;
  const { client, clock, random, mayDestroy = () => Promise.resolve(true) } = options;
  const shared = { ...around, client, clock, figures: meters.orphans, hypervisors };
  const seen = { vms, images, claims, orphans };
  const sweepDeps = { ...shared, ...seen, wakeOrphan, imageFileOf: fileNameOf };
  const orphanDeps: OrphanDeps = {
    ...shared,
    random,
    fence: { mayWrite },
    orphans: new WrittenObjects(orphans),
    memory: new Map<string, OrphanMemory>(),
    slots,
    wake: wakeOrphan,
    namedVolumes,
    forbidden: (vm: VirtualMachine, on: Hypervisor) => forbidden(vm, on, new Map()),
    mayDestroy,
    destroyed,
  };
  const complete = [claims, images, orphans].map((informer) => onlyComplete<KubeObject>(informer));
  return {
    sweep: {
      name: "sweep",
      sources: [ownObjects(hypervisors), relatedObjects(vms, waitsFor, blockedId), ...complete],
      reconcile: (key) => reconcileSweep(key, sweepDeps),
    },
    orphan: {
      name: "orphan",
      sources: [ownObjects(orphans), onlyComplete(hypervisors)],
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
