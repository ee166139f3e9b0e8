import type { FailureCategory } from "../../api/index.ts";
import { blockedWaitMs, refusedPolicy } from "../../controllers/operations/index.ts";
import type { PveReply, PveRequest } from "../../drivers/proxmox/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import { endOf, type AttemptEnd } from "./attempt-end.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import { nameOf, subjectOf } from "./wire.ts";

/** Times are told in seconds, rounded down. */
const roundingMs = 1_000;
/** So often in a row the same may be reported as done without effect before that is a failure. */
const vainMax = 3;
/**
 * So often the same may be sent without its pause where another step was done in between: after an
 * end of which nobody knows, that may have been needed first.
 */
const overtakenMax: Partial<Record<AttemptEnd["is"], number>> = { done: Infinity, unknown: 2 };

/** What is known of the object for which a request is sent. */
export interface Behind {
  /** Changes with everything that a person declares or asks for, and with what others do. */
  readonly word: string;
  /** Of the failure that its status tells of this step, if any. */
  readonly category: FailureCategory | undefined;
}

export interface StepLawsOptions {
  readonly nowMs: () => number;
  readonly behind: (site: Site, request: PveRequest) => Behind;
  /** How often a program was started: an answer to one that died is known to nobody. */
  readonly starts: () => number;
}

interface Attempt {
  readonly request: PveRequest;
  readonly sentMs: number;
  readonly starts: number;
  reply?: PveReply;
  answeredMs?: number;
}

/** Attempts at the same thing, one after the other, with nothing between that excuses the next. */
interface Row {
  readonly word: string;
  last: Attempt;
  /** How often it ended so, by the end and its words. */
  readonly ends: Map<string, number>;
}

/**
 * Law 6, per target and step: the same request is sent again only as the table of categories
 * allows, whether its sender remembers the attempts before or not. What excuses the next one:
 * another declaration or a person's word, and somebody else's hands on the same id.
 */
export class StepLaws {
  readonly #options: StepLawsOptions;
  readonly #rows = new Map<string, Row>();
  /** The last request for each target, by its key. */
  readonly #latest = new Map<string, string>();

  constructor(options: StepLawsOptions) {
    this.#options = options;
  }

  /** Asked before every request that changes something. */
  beforeEffect(site: Site, request: PveRequest): void {
    const of = targetOf(request);
    if (of === undefined) return;
    const target = `${site.name} ${of}`;
    const key = `${target} ${keyOf(request)}`;
    const { nowMs, starts, behind } = this.#options;
    const attempt: Attempt = { request, sentMs: nowMs(), starts: starts() };
    const { word, category } = behind(site, request);
    const row = this.#rows.get(key);
    const isAlone = this.#latest.get(target) === key;
    this.#latest.set(target, key);
    if (row?.word !== word) {
      this.#rows.set(key, { word, last: attempt, ends: new Map() });
      return;
    }
    const { last } = row;
    row.last = attempt;
    demandPace(row, { site, end: this.#endOf(site, last), last, attempt, isAlone, category });
  }

  /** What the sender of a request was told. */
  whenAnswered(request: PveRequest, reply: PveReply): void {
    for (const { last } of this.#rows.values()) {
      if (last.request !== request) continue;
      last.reply = reply;
      last.answeredMs = this.#options.nowMs();
    }
  }

  /** A status was taken away, and with it what paces: it starts from the beginning. */
  loseStatus(): void {
    this.#rows.clear();
  }

  #endOf(site: Site, { reply, answeredMs, starts, sentMs }: Attempt): AttemptEnd {
    const end = endOf(site, reply, answeredMs ?? sentMs);
    // Of a task the next process finds out; an answer is lost with the process that waited for it.
    const isTask = reply?.type === "answered" && reply.body.includes("UPID:");
    return isTask || starts === this.#options.starts() ? end : { is: "unknown" };
  }
}

interface Repetition {
  readonly site: Site;
  /** How the one before it ended. */
  readonly end: AttemptEnd;
  readonly last: Attempt;
  readonly attempt: Attempt;
  /** Nothing else was sent for the same target in between. */
  readonly isAlone: boolean;
  readonly category: FailureCategory | undefined;
}

function demandPace(row: Row, repetition: Repetition): void {
  const { site, end, last, attempt, isAlone } = repetition;
  // What was done, and undone by another request of ours, may have to be done again.
  if (!isAlone && end.is === "done") row.ends.clear();
  const kind = kindOf(end);
  const times = (row.ends.get(kind) ?? 0) + 1;
  row.ends.set(kind, times);
  const isOvertaken = !isAlone && times <= (overtakenMax[end.is] ?? 0);
  const fromMs = "atMs" in end ? end.atMs : last.sentMs;
  const pauseMs = attempt.sentMs - fromMs;
  const dueMs = isOvertaken ? 0 : dueOf(end, times, repetition);
  if (pauseMs >= dueMs) return;
  const what = `${nameOf(attempt.request)} on ${site.name} was sent again after ${pauseMs} ms`;
  const due = dueMs === Infinity ? "nothing more is to be tried" : `${dueMs} ms are due`;
  throw new Violation(6, `${what}, where ${due}: ${kind}, for the ${times}. time`);
}

function kindOf(end: AttemptEnd): string {
  return end.is === "failed" ? `failed: ${end.words}` : end.is;
}

/** How long after its end the same may be sent again at the soonest. */
function dueOf(end: AttemptEnd, times: number, { category }: Repetition): number {
  switch (end.is) {
    case "running":
      return Infinity;
    case "unknown":
      return leastOf("NetworkError", Math.max(1, times - 1));
    case "blocked":
      return rarerMs(times);
    case "changed":
      return times === 1 ? 0 : rarerMs(times - 1);
    case "done":
      return times < vainMax ? 0 : leastOf("NetworkError", times - vainMax + 1);
    case "failed":
      return leastOf(category ?? "NetworkError", times);
  }
}

function rarerMs(times: number): number {
  const last = { key: "", step: "", outcome: "Blocked", at: "", times: times - 1 } as const;
  return blockedWaitMs({ key: "", last }) - roundingMs;
}

/** The shortest wait of the table after so many failures; what only a person mends has another. */
function leastOf(category: FailureCategory, times: number): number {
  const policy = categoryPolicies[category];
  const { delaysMs, jitter } = policy.next === "stall" ? refusedPolicy : policy;
  if (policy.next === "retry" && times >= policy.attemptsMax) return Infinity;
  const delayMs = delaysMs[Math.min(times, delaysMs.length) - 1] ?? 0;
  return delayMs * (1 - jitter) - roundingMs;
}

/** What a request is about: a VM with its volumes, or a file; undefined: none of these. */
export function targetOf(request: PveRequest): string | undefined {
  const id = subjectOf(request);
  if (id !== undefined) return `vm ${id}`;
  const { path, params = {}, file } = request;
  const [, where, rest = ""] = /^\/(nodes\/[^/]+\/storage\/[^/]+)\/(.+)$/.exec(path) ?? [];
  if (where === undefined) return undefined;
  const name = rest.startsWith("content/") ? decodeURIComponent(rest.slice(8)) : "";
  return `file ${where} ${name.replace(/^.*\//, "") || (file?.name ?? String(params["filename"]))}`;
}

/** The volume of a blank disk has the operation in its name, which differs between attempts. */
const ofOperation = /-berth-[0-9a-f]{12}/g;

/** The request without what differs between attempts at the same thing. */
function keyOf({ method, path, params = {}, file }: PveRequest): string {
  const { digest: _digest, "target-digest": _target, ...lasting } = params;
  const said = JSON.stringify(lasting).replaceAll(ofOperation, "-berth-");
  return `${method} ${path} ${said} ${file?.name ?? ""}`;
}
