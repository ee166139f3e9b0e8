import { createHash } from "node:crypto";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** A guest whose agent says nothing has a quarter of an hour to read its disc. */
export function isSeedUnread({ records, sites }: World): boolean {
  return [...records.claims.values()].some(({ spec }) => {
    const isHeld = spec.volumes?.some(({ role }) => role === "CloudInit") === true;
    return isHeld && sites.get(spec.hypervisor.name)?.isRunning(spec.externalId) === true;
  });
}

/** How much was written and sent until now, and what the statuses say of sweeps. */
interface Activity {
  readonly written: number;
  readonly sent: number;
  readonly sweeps: readonly string[];
  /** The names of all Orphans. */
  readonly orphans: readonly string[];
}

/** An Orphan is created, and its status is written. */
const writesOfReport = 2;

export function activityOf({ records, wires }: World): Activity {
  return {
    written: records.writesOfObjects(),
    sent: [...wires.values()].reduce((sum, { writes }) => sum + writes, 0),
    sweeps: [...records.hypervisors.values()].map(({ metadata, status }) => {
      return JSON.stringify([metadata.name, status?.sweep]);
    }),
    orphans: [...records.orphans.values()].map(({ metadata }) => metadata.name ?? ""),
  };
}

/**
 * Law 8: nothing was written or sent in between. Only what a sweep has to know of those before it
 * changes, and what it had sighted is reported, when something has been there for long enough.
 */
export function demandSilent(before: Activity, after: Activity): void {
  const swept = after.sweeps.filter((one) => !before.sweeps.includes(one)).length;
  const reported = after.orphans.filter((name) => wasSighted(before, name)).length;
  const written = after.written - before.written - swept - reported * writesOfReport;
  if (written > 0) throw new Violation(8, `${written} objects were written while all rests`);
  const sent = after.sent - before.sent;
  if (sent > 0) throw new Violation(8, `${sent} changes were sent while all rests`);
}

/** Whether a sweep had seen it when the rest began, and waited for its grace time. */
function wasSighted({ orphans, sweeps }: Activity, name: string): boolean {
  const short = createHash("sha256").update(name).digest("hex").slice(0, 16);
  return !orphans.includes(name) && sweeps.some((one) => one.includes(short));
}

/** Nothing was written for so long. */
export function quietFor({ records, clock }: World, ms: number): () => boolean {
  let [writes, sinceMs] = [records.writesOfObjects(), clock.monotonicMs()];
  return () => {
    const now = records.writesOfObjects();
    if (now !== writes) [writes, sinceMs] = [now, clock.monotonicMs()];
    return clock.monotonicMs() - sinceMs >= ms;
  };
}
