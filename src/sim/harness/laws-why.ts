import type { VirtualMachineStatus } from "../../api/index.ts";
import type { Condition, KubeObject } from "../../kernel/object.ts";
import { Violation } from "./violation.ts";

/** These wait for another thing, which their words name: when it comes they go on. */
const waiting = new Set(["QuotaExceeded", "ImageNotFound", "DependencyNotReady"]);

/** What every status of Berth's has in common. */
export interface Telling extends KubeObject {
  readonly status?: {
    readonly observedGeneration?: number | undefined;
    readonly conditions?: readonly Condition[] | undefined;
    readonly failure?: VirtualMachineStatus["failure"];
    readonly waitingFor?: VirtualMachineStatus["waitingFor"];
    readonly operation?: unknown;
  };
}

/**
 * Law 9: whoever was looked at says whether it is Ready, and what is not says why; a failure has
 * its kind and its words, and says when it goes on, what it waits for, that a person has to act, or
 * what is being done right now.
 */
export function demandWhy({ kind, metadata, status }: Telling): void {
  if (status === undefined) return;
  const who = `${kind} ${metadata.name}`;
  const { conditions = [], failure, observedGeneration } = status;
  const ready = conditions.find(({ type }) => type === "Ready");
  if (observedGeneration !== undefined && ready === undefined) {
    throw new Violation(9, `${who} was looked at, and does not say whether it is Ready`);
  }
  for (const { type, status: is, reason, message } of conditions) {
    const isTold = is === goodOf(type) || message !== "";
    if (reason === "" || !isTold) {
      throw new Violation(9, `${who} has ${type} ${is} without a word`);
    }
  }
  if (failure !== undefined) demandWhole(who, failure, status);
}

function demandWhole(
  who: string,
  failure: NonNullable<VirtualMachineStatus["failure"]>,
  { conditions = [], waitingFor, operation }: NonNullable<Telling["status"]>,
): void {
  const { category, message, firstAt, nextRetryAt } = failure;
  const missing = Object.entries({ category, message, firstAt }).find(([, text]) => text === "");
  if (missing !== undefined) throw new Violation(9, `${who} fails without its ${missing[0]}`);
  const isStalled = conditions.some(({ type, status: is }) => type === "Stalled" && is === "True");
  const isWaiting = waitingFor !== undefined || waiting.has(category);
  const isWorking = operation !== undefined;
  if (nextRetryAt !== undefined || isStalled || isWaiting || isWorking) return;
  throw new Violation(9, `${who} fails with ${category} (${message}), and what comes next is open`);
}

/** The status of a condition that needs no words. */
function goodOf(type: string): Condition["status"] {
  return type === "Stalled" || type === "Reconciling" ? "False" : "True";
}
