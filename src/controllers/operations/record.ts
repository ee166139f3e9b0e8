import { createHash } from "node:crypto";
import type { VirtualMachineStatus } from "../../api/index.ts";
import type { Operation } from "../../hypervisor/index.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import type { Random } from "../../kernel/random.ts";

/**
 * The open operation of an object, as its status has it. It is durable before the hypervisor hears
 * of it, and everything that paces the operation follows from it: a process that remembers nothing
 * goes on from the record alone.
 */
export type OperationRecord = NonNullable<VirtualMachineStatus["operation"]>;

/** How the operation before the open one ended. */
export type LastOperation = NonNullable<OperationRecord["last"]>;
export type OperationOutcome = LastOperation["outcome"];

const version = 1;
const digits = 24;
/** As much of an intent as a status keeps. It is for people, and never compared. */
const intentMax = 1024;
const slotsMax = 8;
/** As many operations are remembered that ended without a result before others. */
const unfinishedMax = 3;
const slotTextMax = 256;
/** How long a request of 0.1 could take effect, where its record does not say. */
const windowMsOld = 61_000;

/** What tells one operation from another. */
export interface OperationKey {
  readonly key: string;
  readonly target: string;
  readonly argumentsDigest: string;
}

/**
 * The key of an operation: a digest of its kind, its target and its arguments. What differs between
 * attempts at the same thing is left out: the version under which a VM was read and the node that
 * it was on then (`at`), and whether it is a repetition. Texts for people are no part of it. Pure.
 */
export function keyOf(operation: Operation): OperationKey {
  const target = targetOf(operation);
  const argumentsDigest = digest(JSON.stringify(operation, lasting));
  const key = digest(`${operation.kind}\n${target}\n${argumentsDigest}`);
  return { key, target, argumentsDigest };
}

function targetOf(operation: Operation): string {
  if ("claim" in operation) return `vm ${operation.claim.externalId}`;
  const { node } = operation;
  if ("volume" in operation) return `volume ${operation.volume} on ${node}`;
  return `file ${operation.storage}/${operation.fileName} on ${node}`.slice(0, 512);
}

/** What a digest in a status must not help to guess, and what only one attempt has. */
const left: ReadonlySet<string> = new Set([
  "at",
  "chunks",
  "content",
  "fileClaim",
  "isRepeated",
  "knownFile",
  "passwordHash",
  "userData",
]);

/** Of a Claim only its id counts. */
function lasting(member: string, value: unknown): unknown {
  if (left.has(member)) return undefined;
  if (member !== "claim") return value;
  const isOne = typeof value === "object" && value !== null;
  return isOne && "externalId" in value ? value.externalId : undefined;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}

/** What a record is opened with. */
export interface Opening {
  readonly step: string;
  readonly operation: Operation;
  readonly intent: string;
  /** How long a request whose reply is lost may still take effect. */
  readonly windowMs: number;
  readonly attempt: number;
  /** What it holds while it goes on. */
  readonly slots?: readonly string[];
  /** How the operations before it ended. */
  readonly ends?: EarlierEnds | undefined;
  /** The epoch of the run that opens it, on the hypervisor that it is about. */
  readonly epoch?: number | undefined;
}

export function openRecord(
  { step, operation, intent, windowMs, attempt, slots = [], ends, epoch }: Opening,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): OperationRecord {
  return {
    version,
    id: random.uuid(),
    ...keyOf(operation),
    step,
    intent: intent.slice(0, intentMax),
    attempt,
    since: formatTime(clock.nowMs()),
    deadline: deadlineOf(windowMs, clock),
    windowMs,
    clock: clockOf(clock),
    slots: slots.slice(0, slotsMax).map((name) => name.slice(0, slotTextMax)),
    ...(epoch === undefined ? {} : { epoch: String(epoch) }),
    ...ends,
  };
}

/** What a record is opened with of which nobody knows what it did. */
export type UnknownOpening = Pick<Opening, "step" | "intent" | "windowMs">;

/**
 * The record of an operation of which nobody knows what it was, or whether there was any. It has no
 * key, so it may be any operation: nothing is sent until its window is over.
 */
export function openUnknownRecord(
  { step, intent, windowMs }: UnknownOpening,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): OperationRecord {
  return {
    version,
    id: random.uuid(),
    step,
    intent: intent.slice(0, intentMax),
    attempt: 1,
    since: formatTime(clock.nowMs()),
    deadline: deadlineOf(windowMs, clock),
    windowMs,
    clock: clockOf(clock),
  };
}

/** When a window that begins now ends, for people. Nothing is decided by it. */
function deadlineOf(windowMs: number, clock: Clock): string {
  // Times in the API are whole seconds, rounded down: one more is the same or later.
  return formatTime(clock.nowMs() + windowMs + 1_000);
}

/** The same record, with its window counted from now on this machine's clock. */
export function takenOver(record: OperationRecord, clock: Clock): OperationRecord {
  const windowMs = windowOf(record);
  const deadline = deadlineOf(windowMs, clock);
  return { ...record, version, windowMs, deadline, clock: clockOf(clock) };
}

/**
 * How long its effect may still arrive. On the boot on which the record was written only that
 * boot's clock counts: the date may be set while it waits. Undefined: the record was written on
 * another boot or by 0.1, so that nothing here tells how much time has passed; it has to be taken
 * over first, and its whole window counts from there.
 */
export function windowLeftMs(record: OperationRecord, clock: Clock): number | undefined {
  if (record.clock === undefined) return undefined;
  if (!guard("operation-same-boot", record.clock.boot === clock.bootId)) return undefined;
  return Math.max(0, record.clock.uptimeMs + windowOf(record) - clock.monotonicMs());
}

/** How long ago it was opened, or taken over: on the same boot by its clock, else by the date. */
export function ageMs({ clock: opened, since }: OperationRecord, clock: Clock): number {
  const isSameBoot = opened?.boot === clock.bootId;
  const age = isSameBoot
    ? clock.monotonicMs() - opened.uptimeMs
    : clock.nowMs() - Date.parse(since);
  return Math.max(0, age);
}

function windowOf({ windowMs, since, deadline }: OperationRecord): number {
  if (windowMs !== undefined) return windowMs;
  const ms = Date.parse(deadline ?? "") - Date.parse(since);
  return Number.isFinite(ms) && ms > 0 ? ms : windowMsOld;
}

function clockOf(clock: Clock): NonNullable<OperationRecord["clock"]> {
  return { boot: clock.bootId, uptimeMs: Math.ceil(clock.monotonicMs()) };
}

/** Whether an operation is the recorded one. A record of 0.1 has no key, and may be any. */
export function isSameOperation(
  record: { readonly key?: string | undefined },
  operation: Operation,
): boolean {
  return record.key === undefined || record.key === keyOf(operation).key;
}

/** What a record says of the operations before it. */
export type EarlierEnds = Pick<OperationRecord, "last" | "unfinished">;

/** How the same operation ended before this record, although others may have ended since. */
export function endBefore(
  { last, unfinished = [] }: EarlierEnds,
  key: string | undefined,
): LastOperation | undefined {
  return [last, ...unfinished]
    .filter((end) => end !== undefined)
    .find((end) => guard("times-of-same-operation", end.key === key));
}

/** What the next record says of this one. The same end of the same operation is counted. */
export function lastOf(
  record: OperationRecord,
  outcome: OperationOutcome,
  nowMs: number,
): LastOperation | undefined {
  const { key, step } = record;
  if (key === undefined) return undefined;
  const before = endBefore(record, key);
  const isSame = guard("last-of-same-outcome", before?.outcome === outcome);
  const times = (isSame ? (before?.times ?? 0) : 0) + 1;
  return { key, step, outcome, at: formatTime(nowMs), times };
}

const unfinishedOutcomes: ReadonlySet<OperationOutcome> = new Set([
  "Lost",
  "Abandoned",
  "Blocked",
  "Changed",
]);

/**
 * What the next record says of the operations before it. One that ended without a result, or
 * because something was in its way, is not forgotten because another step had to be done first,
 * such as removing what it left. Once it has ended again itself, only that end counts.
 */
export function endsAfter(
  record: OperationRecord,
  { outcome, task }: { readonly outcome: OperationOutcome; readonly task: string | undefined },
  nowMs: number,
): EarlierEnds {
  const last = lastOf(record, outcome, nowMs);
  const unfinished = [record.last, ...(record.unfinished ?? [])]
    .filter((end) => end !== undefined)
    .filter((end) => end.key !== record.key && unfinishedOutcomes.has(end.outcome))
    .slice(0, unfinishedMax);
  return {
    ...(last === undefined ? {} : { last: task === undefined ? last : { ...last, task } }),
    ...(unfinished.length === 0 ? {} : { unfinished }),
  };
}
