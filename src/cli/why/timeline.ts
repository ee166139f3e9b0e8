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

/**
 * What happened, the oldest first: declared and edited, claimed, what was done and how it ended,
 * what the hypervisor's tasks said, and the guest. Each time that the object or its Claim keeps is
 * a row, between those that Events tell.
 */
export function timelineRows(parts: TimelineParts, nowMs: number): Row[] {
  return momentsOf(parts)
    .filter(({ lastAt }) => !Number.isNaN(Date.parse(lastAt)))
    .toSorted((a, b) => Date.parse(a.lastAt) - Date.parse(b.lastAt))
    .map((each) => {
      return [happenedWhen(each, nowMs), each.type, each.reason, each.message.trim()];
    });
}

function momentsOf({ object, events, claim }: TimelineParts): Happening[] {
  const status = statusOf(object);
  return [
    ...declarations(object),
    ...(claim === undefined ? [] : claimMoments(claim)),
    ...failureMoments(status["failure"]),
    ...operationMoments(status["operation"]),
    ...guestMoments(object),
    ...events,
  ];
}

function moment(at: unknown, reason: string, message: string): Happening {
  const time = typeof at === "string" ? at : "";
  return { type: "Normal", reason, message, from: "", count: 1, firstAt: time, lastAt: time };
}

/** When it was made, and who wrote what is declared since, as far as the server notes it. */
function declarations({ metadata }: KubeObject): Happening[] {
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

function claimMoments({ metadata, spec: written }: KubeObject): Happening[] {
  const spec = isJsonObject(written) ? written : {};
  const { externalId, reservedAt, boundAt, releasedAt, releaseReason } = spec;
  const id = textOf(externalId);
  return [
    moment(reservedAt, "Claimed", `the id ${id} was reserved by the Claim ${metadata.name ?? ""}`),
    moment(boundAt, "Claimed", `Berth's mark was read back from the machine ${id}`),
    moment(releasedAt, "Claimed", `the machine was let go: ${textOf(releaseReason)}`),
  ];
}

function failureMoments(failure: unknown): Happening[] {
  if (!isJsonObject(failure)) return [];
  const { step, firstAt, lastAt, attempts, message } = failure;
  const reason = typeof step === "string" ? `Failed at ${textOf(step)}` : "Failed";
  const count = typeof attempts === "number" ? attempts : 1;
  const times = { firstAt: textOf(firstAt), lastAt: textOf(lastAt) };
  return [{ type: "Warning", reason, message: textOf(message), from: "", count, ...times }];
}

function operationMoments(operation: unknown): Happening[] {
  if (!isJsonObject(operation)) return [];
  const { since, step, intent, task } = operation;
  const named = typeof task === "string" ? ` (task ${textOf(task)})` : "";
  return [moment(since, textOf(step), `${textOf(intent)}${named}`)];
}

/** What became true of the machine and of its guest, and since when. */
const turns: Readonly<Record<string, string>> = {
  Provisioned: "the machine stands with its disks",
  Running: "the machine is powered on",
  AgentReady: "the agent in the guest answers",
};

function guestMoments(object: KubeObject): Happening[] {
  return conditionsOf(object).flatMap((condition) => {
    const { type, status, lastTransitionTime } = condition;
    const text = turns[textOf(type)];
    if (text === undefined || status !== "True") return [];
    return [moment(lastTransitionTime, textOf(type), text)];
  });
}
