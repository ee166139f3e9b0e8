import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { type Happening, happenedWhen } from "../objects/events.ts";
import { conditionsOf } from "../objects/expectation.ts";
import { textOf } from "../objects/text.ts";
import { statusOf } from "./findings.ts";

export interface TimelineParts {
  readonly object: KubeObject;
  readonly events: readonly Happening[];
  /** The machine's Claim, where there is one and it may be read. */
  readonly claim?: KubeObject | undefined;
}

/** One row: when, how grave, what, and a sentence. */
type Row = readonly [string, string, string, string];

/** What the object or its Claim keeps, and which Events of the same second it comes after. */
interface Kept extends Happening {
  readonly follows?: RegExp;
}

/**
 * What happened, the oldest first: declared and edited, claimed, what was done and how it ended,
 * what the hypervisor's tasks said, and the guest. Each time that the object or its Claim keeps is
 * a row, between those that Events tell.
 */
export function timelineRows(parts: TimelineParts, nowMs: number): Row[] {
  const rows = parts.events.filter(hasTime).toSorted((a, b) => secondOf(a) - secondOf(b));
  for (const kept of keptMoments(parts).filter(hasTime)) insert(rows, kept);
  return rows.map((each) => {
    return [happenedWhen(each, nowMs), each.type, each.reason, each.message.trim()];
  });
}

function keptMoments({ object, events, claim }: TimelineParts): Kept[] {
  const status = statusOf(object);
  return [
    ...declarations(object),
    ...(claim === undefined ? [] : claimMoments(claim)),
    ...failureMoments(status["failure"], events),
    ...operationMoments(status["operation"], events),
    ...guestMoments(object),
  ];
}

/** Times are whole seconds: within one, a row goes behind what it follows from, or else last. */
function insert(rows: Happening[], { follows, ...row }: Kept): void {
  const second = secondOf(row);
  const start = rows.filter((each) => secondOf(each) < second).length;
  const end = rows.filter((each) => secondOf(each) <= second).length;
  const last = rows.slice(start, end).findLastIndex(({ reason }) => follows?.test(reason) === true);
  const behind = last < 0 ? end : start + last + 1;
  rows.splice(follows === undefined ? start : behind, 0, row);
}

function hasTime({ lastAt }: Happening): boolean {
  return !Number.isNaN(Date.parse(lastAt));
}

function secondOf({ lastAt }: Happening): number {
  return Math.floor(Date.parse(lastAt) / 1000);
}

function moment(at: unknown, reason: string, message: string): Happening {
  const time = typeof at === "string" ? at : "";
  return { type: "Normal", reason, message, from: "", count: 1, firstAt: time, lastAt: time };
}

/** When it was made, and who wrote what is declared since, as far as the server notes it. */
function declarations({ metadata }: KubeObject): Kept[] {
  const { creationTimestamp, deletionTimestamp, managedFields } = metadata;
  const writers = Array.isArray(managedFields) ? managedFields.filter(isJsonObject) : [];
  const edits = writers.filter(({ subresource, fieldsV1 }) => {
    return subresource === undefined && isJsonObject(fieldsV1) && "f:spec" in fieldsV1;
  });
  return [
    moment(creationTimestamp, "Declared", "the object was made"),
    ...edits
      .filter(({ time }) => time !== creationTimestamp)
      .map(({ time, manager }) => moment(time, "Declared", `edited by ${textOf(manager)}`)),
    ...(deletionTimestamp === undefined
      ? []
      : [moment(deletionTimestamp, "Declared", "it was asked to go")]),
  ];
}

function claimMoments({ metadata, spec: written }: KubeObject): Kept[] {
  const spec = isJsonObject(written) ? written : {};
  const { externalId, reservedAt, boundAt, releasedAt, releaseReason } = spec;
  const id = textOf(externalId);
  const reserved = `the id ${id} was reserved by the Claim ${metadata.name ?? ""}`;
  const bound = `Berth's mark was read back from the machine ${id}`;
  return [
    { ...moment(reservedAt, "Claimed", reserved), follows: /^(Declared|Reserved)$/ },
    { ...moment(boundAt, "Claimed", bound), follows: /^(Claimed|Create\w*|Clone\w*|Stamp\w*)$/ },
    {
      ...moment(releasedAt, "Claimed", `the machine was let go: ${textOf(releaseReason)}`),
      follows: /Done$/,
    },
  ];
}

/** Unless the Event of the last attempt still tells the same. */
function failureMoments(failure: unknown, events: readonly Happening[]): Kept[] {
  if (!isJsonObject(failure)) return [];
  const { category, step, firstAt, lastAt, attempts, message } = failure;
  const reason = typeof step === "string" ? `Failed at ${textOf(step)}` : "Failed";
  const count = typeof attempts === "number" ? attempts : 1;
  const times = { firstAt: textOf(firstAt), lastAt: textOf(lastAt) };
  const row = { type: "Warning", reason, message: textOf(message), from: "", count, ...times };
  const isTold = events.some((event) => {
    const apart = Math.abs(secondOf(event) - secondOf(row));
    return event.reason === category && event.count >= count && apart <= 1;
  });
  return isTold ? [] : [{ ...row, follows: /./ }];
}

/** Unless its Event, which has the task's name, still tells the same. */
function operationMoments(operation: unknown, events: readonly Happening[]): Kept[] {
  if (!isJsonObject(operation)) return [];
  const { since, step, intent, task } = operation;
  const named = typeof task === "string" ? ` (task ${textOf(task)})` : "";
  const isTold = named !== "" && events.some(({ message }) => message.includes(named));
  const row = moment(since, textOf(step), `${textOf(intent)}${named}`);
  return isTold ? [] : [{ ...row, follows: /^(Declared|Reserved|Claimed|\w+Done)$/ }];
}

/** What became true of the machine and of its guest, after which steps, and since when. */
const turns: Readonly<Record<string, { readonly text: string; readonly follows: RegExp }>> = {
  Provisioned: {
    text: "the machine stands with its disks",
    follows: /^(Create|Clone|AddDisk|Grow)Done$/,
  },
  Running: { text: "the machine is powered on", follows: /^StartDone$/ },
  AgentReady: { text: "the agent in the guest answers", follows: /./ },
};

function guestMoments(object: KubeObject): Kept[] {
  return conditionsOf(object).flatMap((condition) => {
    const { type, status, lastTransitionTime } = condition;
    const turn = turns[textOf(type)];
    if (turn === undefined || status !== "True") return [];
    const { text, follows } = turn;
    return [{ ...moment(lastTransitionTime, textOf(type), text), follows }];
  });
}
