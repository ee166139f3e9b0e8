import type { FailureCategory } from "../api/index.ts";

/**
 * What went wrong, as a value: it is stored, shown and counted. The category is decided in the
 * driver, from codes and exact texts; nobody else looks into the words.
 */
export interface Failure {
  readonly category: FailureCategory;
  /** What failed, where and why, in one sentence of ours. Never a secret. */
  readonly message: string;
  /** The hypervisor's own words, as they came. */
  readonly cause?: string;
  /** What a person can do about it, with commands to copy. */
  readonly remedy?: string;
  /** Of a connection: what exactly was not accepted, where that is known. */
  readonly connection?: "CertificateMismatch" | "CredentialsRefused";
  /** Of what is waited for: nothing is wrong with it, it is being looked for or brought. */
  readonly isUnderWay?: true;
  /** Of a request: no reply came, and no effect was observed until it could no longer arrive. */
  readonly isUnanswered?: true;
}

/** An answer that may be missing. A failure here is a value, because it outlives the process. */
export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: Failure };

/**
 * What follows from a failure.
 *
 * - `retry`: it passes by itself; try again on the schedule, until the attempts are used up.
 * - `wait`: another thing has to come first; look when it changes, and at times all the same.
 * - `stall`: only a person can mend it; nothing until the declaration or the world changes.
 * - `look`: nobody knows whether it happened; observe before anything else.
 */
export interface CategoryPolicy {
  readonly next: "retry" | "wait" | "stall" | "look";
  /** The wait after the first failure, the second and so on; the last is for all that follow. */
  readonly delaysMs: readonly number[];
  /** How far a wait may be off to either side, as a part of it. */
  readonly jitter: number;
  /** The failure after which nothing more is tried. */
  readonly attemptsMax: number;
}

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const jitter = 0.2;

const forEver: CategoryPolicy = {
  next: "retry",
  delaysMs: [30 * secondMs, minuteMs, 2 * minuteMs, 5 * minuteMs, 10 * minuteMs],
  jitter,
  attemptsMax: Infinity,
};

/** The same failure five times over is not going to be another one the sixth time. */
const fewTimes: CategoryPolicy = { ...forEver, attemptsMax: 5 };

const waiting: CategoryPolicy = { ...forEver, next: "wait" };

/** The one failure is the last one: there is no second attempt to wait for. */
const stalling: CategoryPolicy = { next: "stall", delaysMs: [], jitter: 0, attemptsMax: 1 };

/** Soon, because everything else waits for the answer; slower if none comes. */
const looking: CategoryPolicy = {
  next: "look",
  delaysMs: [secondMs, 2 * secondMs, 5 * secondMs, 10 * secondMs, 30 * secondMs],
  jitter,
  attemptsMax: Infinity,
};

/** The one table: every category has one policy, and no controller has another. */
export const categoryPolicies: Readonly<Record<FailureCategory, CategoryPolicy>> = {
  APINotSupported: stalling,
  ConfigurationError: stalling,
  // Space is freed and other machines go: then it goes on by itself.
  QuotaExceeded: waiting,
  NodeUnhealthy: forEver,
  ImageNotFound: waiting,
  LockError: stalling,
  NetworkError: forEver,
  CreationFailed: fewTimes,
  PermissionDenied: stalling,
  OrphanedVolumes: stalling,
  IdentityConflict: stalling,
  UnknownOutcome: looking,
  Missing: stalling,
  ReplacementRequired: stalling,
  ConflictingController: stalling,
  DependencyNotReady: waiting,
};

/**
 * Where several things are wrong at once, the first of these that is among them decides what
 * follows: what only a person can mend before what comes by itself, and that before what passes.
 */
export const severities: readonly FailureCategory[] = [
  "IdentityConflict",
  "ConflictingController",
  "OrphanedVolumes",
  "LockError",
  "PermissionDenied",
  "ConfigurationError",
  "APINotSupported",
  "ReplacementRequired",
  "Missing",
  "QuotaExceeded",
  "ImageNotFound",
  "DependencyNotReady",
  "CreationFailed",
  "NodeUnhealthy",
  "NetworkError",
  "UnknownOutcome",
];

export function answered<T>(value: T): Answer<T> {
  return { ok: true, value };
}

export function failed(failure: Failure): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure };
}
