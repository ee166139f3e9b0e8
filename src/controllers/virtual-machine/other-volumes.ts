import type { ClaimSpec } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { formatTime } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";

type OtherVolumes = NonNullable<ClaimSpec["otherVolumes"]>;

/** For so long complete lists must not show a volume: a storage may take so long to be mounted. */
const absenceMs = 10 * 60_000;

/** One list of the volumes under an id. */
export interface Listing {
  readonly listed: readonly string[];
  /** Volumes that the VM is declared to take over: they are not in its way. */
  readonly takes: readonly string[];
  /** Whether it would show every volume that exists where the VM is going to be. */
  readonly isComplete: boolean;
  /** A person asks for another try, which says that what is not listed is gone. */
  readonly isAsked: boolean;
  readonly nowMs: number;
  /** Absences from before do not count: nobody looked for a while, and anything may be hidden. */
  readonly countedFromMs: number;
}

/**
 * The volumes of others under an id after one more list. One that is not listed any more may only
 * be hidden: it is believed to be gone when complete lists did not show it for ten minutes. Its
 * name is remembered all the same: a storage may be mounted after hours, and a volume of ours that
 * got the name meanwhile would then be a person's. Pure.
 */
export function otherVolumesAfter(known: OtherVolumes, listing: Listing): OtherVolumes {
  const { takes, nowMs } = listing;
  const there = new Set(listing.listed);
  const kept = known
    .filter(({ id }) => !takes.includes(id))
    .map((volume) => (there.has(volume.id) ? present(volume, nowMs) : hidden(volume, listing)));
  const names = new Set(known.map(({ id }) => id));
  const added = [...there].filter((id) => !names.has(id) && !takes.includes(id));
  return [...kept, ...added.map((id) => ({ id, seenAt: formatTime(nowMs) }))];
}

type OtherVolume = OtherVolumes[number];

function present({ id, seenAt }: OtherVolume, nowMs: number): OtherVolume {
  return { id, seenAt: seenAt ?? formatTime(nowMs) };
}

function hidden(volume: OtherVolume, listing: Listing): OtherVolume {
  const { isComplete, isAsked, nowMs, countedFromMs } = listing;
  if (isBelievedGone(volume)) return volume;
  if (!guard("absence-in-whole-list", isComplete)) return present(volume, nowMs);
  if (isAsked) return gone(volume, nowMs);
  const sinceMs = Date.parse(volume.missingSince ?? "");
  // Also where it is not a time at all.
  if (!guard("absence-counted-from-sight", sinceMs >= countedFromMs)) {
    return { ...present(volume, nowMs), missingSince: formatTime(nowMs) };
  }
  const isLong = nowMs - sinceMs >= absenceMs;
  return guard("absence-long-enough", isLong) ? gone(volume, nowMs) : volume;
}

function gone({ id, missingSince }: OtherVolume, nowMs: number): OtherVolume {
  return { id, missingSince: missingSince ?? formatTime(nowMs) };
}

/**
 * Whether only the name of a volume is remembered: it does not keep the VM from being created. No
 * time says that somebody saw it, which tells it from one that is still waited for.
 */
export function isBelievedGone({ seenAt, missingSince }: OtherVolume): boolean {
  return missingSince !== undefined && seenAt === undefined;
}

/** What keeps the VM from being created though no list shows it. */
export function hiddenFailure(externalId: string, volumes: OtherVolumes): Failure | undefined {
  const missing = volumes.filter((volume) => {
    return volume.missingSince !== undefined && !isBelievedGone(volume);
  });
  if (missing.length === 0) return undefined;
  return {
    category: "OrphanedVolumes",
    message:
      `Volumes that existed under the id ${externalId} are suddenly not listed any more: ` +
      `${listText(missing.map(({ id }) => id))}.`,
    remedy:
      "If somebody removed them, ask for another try (berth retry). Otherwise see that the storage " +
      "is mounted. Berth believes it by itself when they have not been listed for ten minutes.",
  };
}
