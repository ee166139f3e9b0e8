import type { VirtualMachine } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { saidOf } from "./said.ts";

/** However seldom it was looked at meanwhile: a storage that is mounted again may take so long. */
const absenceMs = 10 * 60_000;

/** The part of a run that looks. */
interface Looker {
  readonly deps: { readonly clock: Clock };
  readonly memory: { inTheWay?: InTheWay };
  readonly vm: VirtualMachine;
}

/** What was looked at: elsewhere other volumes are to be expected. */
export interface Looked {
  readonly externalId: string;
  readonly node: string;
  readonly storages: readonly string[];
  /** What is there, and in the way. */
  readonly listed: readonly string[];
  /** What is declared to be taken over is not in the way. */
  readonly takes: readonly string[];
}

/** What was seen of volumes under an id, by their names: since when each is not listed any more. */
export interface InTheWay {
  readonly place: string;
  readonly volumes: ReadonlyMap<string, number | undefined>;
}

/** After a restart the names are not known, only that there were some. */
const unnamed = "those that were told before";

/**
 * What stood in the way under an id that a person chose, and is suddenly not listed: a mount may be
 * missing. Whatever appears under the id after the machine is made counts as made with it, and goes
 * with it; so nothing is made before it is believed that they are gone. Somebody who asks for
 * another try says that they are.
 */
export function outOfSight(turn: Looker, looked: Looked): Failure | undefined {
  const { memory, deps } = turn;
  const nowMs = deps.clock.monotonicMs();
  memory.inTheWay = { place: placeOf(looked), volumes: volumesAfter(turn, looked, nowMs) };
  const missing = [...memory.inTheWay.volumes].flatMap(([volume, sinceMs]) => {
    return sinceMs !== undefined && nowMs - sinceMs < absenceMs ? [volume] : [];
  });
  return missing.length === 0 ? undefined : missingFailure(looked.externalId, missing);
}

/** Berth itself has destroyed it: that it is not listed any more is no wonder. */
export function forgetVolume(memory: Looker["memory"] | undefined, volume: string): void {
  if (memory?.inTheWay === undefined) return;
  const { place, volumes } = memory.inTheWay;
  const left = [...volumes].filter(([name]) => name !== volume);
  memory.inTheWay = { place, volumes: new Map(left) };
}

function volumesAfter(turn: Looker, looked: Looked, nowMs: number): InTheWay["volumes"] {
  const { listed, takes } = looked;
  const volumes = new Map(isAsked(turn) ? [] : knownBefore(turn, looked));
  for (const [volume, sinceMs] of volumes) volumes.set(volume, sinceMs ?? nowMs);
  if (listed.length > 0) volumes.delete(unnamed);
  for (const volume of takes) volumes.delete(volume);
  for (const volume of listed) volumes.set(volume, undefined);
  return volumes;
}

function knownBefore({ memory, vm }: Looker, looked: Looked): InTheWay["volumes"] {
  if (memory.inTheWay?.place === placeOf(looked)) return memory.inTheWay.volumes;
  const wasBlocked = vm.status?.failure?.category === "OrphanedVolumes";
  return new Map(wasBlocked && memory.inTheWay === undefined ? [[unnamed, undefined]] : []);
}

function placeOf({ externalId, node, storages }: Looked): string {
  return [externalId, node, ...new Set(storages)].join(" ");
}

function isAsked({ vm }: Looker): boolean {
  return saidOf(vm.metadata, "reconcileAt") !== vm.status?.handledReconcileAt;
}

function missingFailure(externalId: string, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `Volumes that stood under the id ${externalId} are suddenly not listed any more: ` +
      `${volumes.join(", ")}.`,
    remedy:
      "If somebody removed them, ask for another try (berth retry). Otherwise see that the storage " +
      "is mounted. Berth believes it by itself when they have not been listed for ten minutes.",
  };
}
