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
 * be hidden: it is believed to be gone when complete lists did not show it for ten minutes. Pure.
 */
export function otherVolumesAfter(known: OtherVolumes, listing: Listing): OtherVolumes {
  const { takes, nowMs } = listing;
  const there = new Set(listing.listed);
  const kept = known
    .filter(({ id }) => !takes.includes(id))
    .flatMap((volume) => (there.has(volume.id) ? [present(volume)] : hidden(volume, listing)));
  const names = new Set(known.map(({ id }) => id));
  const added = [...there].filter((id) => !names.has(id) && !takes.includes(id));
  return [...kept, ...added.map((id) => ({ id, seenAt: formatTime(nowMs) }))];
}

function present({ missingSince: _since, ...volume }: OtherVolumes[number]): OtherVolumes[number] {
  return volume;
}

function hidden(volume: OtherVolumes[number], listing: Listing): OtherVolumes {
  const { isComplete, isAsked, nowMs, countedFromMs } = listing;
  if (!guard("absence-in-whole-list", isComplete)) return [present(volume)];
  if (isAsked) return [];
  const sinceMs = Date.parse(volume.missingSince ?? "");
  // Also where it is not a time at all.
  if (!guard("absence-counted-from-sight", sinceMs >= countedFromMs)) {
    return [{ ...volume, missingSince: formatTime(nowMs) }];
  }
  return guard("absence-long-enough", nowMs - sinceMs >= absenceMs) ? [] : [volume];
}

/** What keeps the VM from being created though no list shows it. */
export function hiddenFailure(externalId: string, volumes: OtherVolumes): Failure | undefined {
  const missing = volumes.filter(({ missingSince }) => missingSince !== undefined);
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
