import type { Hypervisor } from "../../api/index.ts";
import type { Answer, OwnTask, OwnWork } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";

const observedReasons: ReadonlySet<string> = new Set(["Superseded", "PlaceChanged"]);

interface Readiness {
  readonly isReady: boolean;
  readonly reason: string;
  readonly since: string;
  readonly message: string;
}

function readinessOf({ status }: Hypervisor): Readiness {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const { reason = "NotObserved", lastTransitionTime: since = "", message = "" } = ready ?? {};
  return { isReady: ready?.status === "True", reason, since, message };
}

/** Another copy acts on it, or may: this one only observes. */
export function isObserved(hypervisor: Hypervisor): boolean {
  return observedReasons.has(readinessOf(hypervisor).reason);
}

/** Nobody can tell who acts: it was not reached, or its credentials are not there. */
export function isUnknown(hypervisor: Hypervisor): boolean {
  return !isObserved(hypervisor) && !readinessOf(hypervisor).isReady;
}

/** Which copy acts, as far as this one can tell. */
export function describeStanding(hypervisor: Hypervisor): string {
  const name = `hypervisor/${hypervisor.metadata.name ?? ""}`;
  const { isReady, reason, since, message } = readinessOf(hypervisor);
  if (!isObserved(hypervisor)) {
    if (isReady) return `${name}: this installation acts on it, and no other`;
    return `${name}: who acts on it is not known, because it cannot be used (${reason}). ${message}`;
  }
  const { epoch, place, startedAt } = hypervisor.status?.otherRun ?? {};
  const facts = [
    epoch === undefined ? "no other copy was ever seen there" : `the other copy has epoch ${epoch}`,
    ...(place === undefined ? [] : [`runs on ${place}`]),
    ...(startedAt === undefined ? [] : [`was started at ${startedAt}`]),
    `this copy only observes it since ${since}`,
  ];
  return `${name}: ${reason}; ${facts.join(", ")}`;
}

/** The epoch that this installation recorded last for a system: which run, and when. */
export interface LastEpoch {
  readonly run: string;
  readonly at: string;
}

/** When another copy may have acted, and this run cannot have. */
export interface Window {
  /** Since the other copy was started, where that is known. */
  readonly fromMs: number;
  /** While this run acted itself: what began then may be its own. */
  readonly own?: { readonly fromMs: number; readonly toMs: number };
}

/** Nobody knows when the other copy was started: then as far back as people remember. */
const unknownStartMs = 24 * 60 * 60_000;

export function windowOf(
  hypervisor: Hypervisor,
  last: LastEpoch | undefined,
  nowMs: number,
): Window {
  const { otherRun, observedBy } = hypervisor.status ?? {};
  const startedMs = Date.parse(otherRun?.startedAt ?? "");
  const fromMs = Number.isFinite(startedMs) ? startedMs : nowMs - unknownStartMs;
  if (last === undefined || last.run !== observedBy) return { fromMs };
  const toMs = Date.parse(readinessOf(hypervisor).since);
  return { fromMs, own: { fromMs: Date.parse(last.at), toMs } };
}

/** When the other copy was last seen to act, as far as its tasks tell. */
export function describeLastWork({ fromMs, own }: Window, work: Answer<OwnWork>): string {
  if (!work.ok) return `  when the other copy last acted is not known: ${work.failure.message}`;
  const { tasks, unread } = work.value;
  const isOwn = ({ sinceMs }: OwnTask): boolean => {
    return own !== undefined && sinceMs >= own.fromMs && sinceMs <= own.toMs;
  };
  const since = tasks.filter((task) => task.sinceMs >= fromMs);
  const certain = since.find((task) => !isOwn(task));
  const newest = certain ?? since[0];
  const partial = unread.length === 0 ? "" : `. Not asked: ${unread.join(", ")}`;
  if (newest === undefined) {
    const none = `no task of the other copy is known since ${formatTime(fromMs)}`;
    return `  ${none}; settings are changed without one${partial}`;
  }
  const { does, target, sinceMs, isRunning } = newest;
  const still = isRunning ? ", which still runs" : "";
  const whose = certain === undefined ? " (before this copy stopped, so it may be its own)" : "";
  const began = `the other copy last began a task at ${formatTime(sinceMs)}${whose}`;
  return `  ${began}: ${does} ${target}${still}${partial}`;
}
