import type { JsonObject } from "../kernel/json.ts";
import type { Answer } from "./categories.ts";
import type { Work } from "./contract.ts";

/**
 * Looks at a connection as an experienced person would, and says what is well, what is doubtful and
 * what is wrong, each with what to do. It changes nothing, and may be repeated at any time.
 *
 * It is apart from the driver, because it also works where no driver could: with an endpoint that
 * is silent, a certificate that is not trusted or a token that is refused.
 */
export interface HypervisorDoctor {
  diagnose(): Promise<Diagnosis>;
  /**
   * An inventory from which a simulated twin can be made: what there is and how large, without
   * secrets, addresses and people's notes. Its form is the driver's own, and has a version.
   */
  snapshot(): Promise<Answer<JsonObject>>;
  /** What was begun with these credentials since a moment, by whomever, as far as it is listed. */
  ownWork(sinceMs: number): Promise<Answer<OwnWork>>;
  close(): void;
}

export interface OwnWork {
  /** Newest first. */
  readonly tasks: readonly OwnTask[];
  /** Parts of the system, as nodes, that were not asked or did not answer. */
  readonly unread: readonly string[];
}

export interface OwnTask {
  readonly does: Work;
  /** On what, for people. */
  readonly target: string;
  /** When it began, by the hypervisor's clock. */
  readonly sinceMs: number;
  readonly isRunning: boolean;
}

export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Of the system that answered, where one did. */
  readonly systemId?: string;
  readonly version?: string;
}

/** One thing that was looked at. */
export interface Finding {
  readonly check: Check;
  /** A warning is worth a look; a problem keeps Berth, or some machine, from working. */
  readonly level: "ok" | "warning" | "problem";
  /** What is so, where and why, in one sentence. Never a secret. */
  readonly message: string;
  /** What a person can do about it, in one sentence. */
  readonly remedy?: string;
  /** Commands for that, in their order, to be copied as they are. */
  readonly commands?: readonly string[];
}

/** What is looked at, in the order in which it is told. */
export const checks = [
  "Endpoint",
  "Certificate",
  "Clock",
  "Credentials",
  "Version",
  "Identity",
  "Rights",
  "Nodes",
  "Storages",
  "Locks",
] as const;

export type Check = (typeof checks)[number];

/**
 * Checks without which a connection is of no use: a problem with one of them does not pass by
 * itself, while a node comes back and a storage is emptied.
 */
const connectionChecks: readonly Check[] = [
  "Endpoint",
  "Certificate",
  "Credentials",
  "Version",
  "Identity",
  "Rights",
];

/** The problems that a person has to mend before the connection can be used. */
export function connectionProblems({ findings }: Diagnosis): Finding[] {
  return findings.filter(({ check, level }) => {
    return level === "problem" && connectionChecks.includes(check);
  });
}
