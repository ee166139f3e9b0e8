import type { Client, Informer } from "../client/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { KubeObject } from "../kernel/object.ts";
import {
  controllerMetrics,
  secondsBuckets,
  type ControllerMetrics,
  type Metrics,
} from "../runtime/index.ts";
import type { Informers } from "./informers.ts";
import {
  measureWatchDelay,
  objectMetrics,
  operationMetrics,
  orphanMetrics,
  placeMetrics,
  type Followed,
  type ObjectMetrics,
  type OperationMetrics,
  type OrphanMetrics,
  type PlaceMetrics,
} from "./reports/index.ts";

/** Everything that the controllers count. Declared once for a program, whatever terms it has. */
export interface Meters {
  readonly controllerOf: (controller: string) => ControllerMetrics;
  readonly operations: OperationMetrics;
  readonly objects: ObjectMetrics;
  readonly places: PlaceMetrics;
  readonly orphans: OrphanMetrics;
  readonly leads: (isLeader: boolean) => void;
  /** A new machine is Ready, and took so much of our own time. */
  readonly made: (ownMs: number) => void;
  /** The same client, whose writes are timed until the copies of `follow` show them. */
  timeWrites(client: Client): {
    readonly client: Client;
    readonly follow: (informers: Informers) => void;
  };
}

export function createMeters(metrics: Metrics, clock: Clock): Meters {
  const leader = metrics.gauge({
    name: "berth_leader",
    help: "Whether the controllers of this process lead: 1 or 0.",
  });
  const delay = metrics.histogram({
    name: "berth_watch_delay_seconds",
    help: "From asking for a write until our own copy shows it through the watch.",
    buckets: secondsBuckets,
  });
  const making = metrics.histogram({
    name: "berth_vm_overhead_seconds",
    help: "Our own time of all reconciles together until a new machine was Ready.",
    buckets: secondsBuckets,
  });
  leader.set({}, 0);
  return {
    controllerOf: controllerMetrics(metrics),
    operations: operationMetrics(metrics),
    objects: objectMetrics(metrics, clock),
    places: placeMetrics(metrics),
    orphans: orphanMetrics(metrics),
    made: (ownMs) => making.observe({}, ownMs / 1000),
    leads: (isLeader) => leader.set({}, isLeader ? 1 : 0),
    timeWrites: (client) => {
      const measured = measureWatchDelay(client, clock, (ms) => delay.observe({}, ms / 1000));
      return {
        client: measured.client,
        follow: ({ vms, claims }) => {
          measured.follow("VirtualMachine", vms);
          measured.follow("Claim", claims);
        },
      };
    },
  };
}

/** Every copy that there is, whatever its kind. */
export function everyInformer(informers: Informers): Followed[] {
  const all: readonly Informer<KubeObject>[] = Object.values(informers);
  return [...all];
}
