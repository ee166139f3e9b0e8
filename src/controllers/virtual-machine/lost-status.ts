import type { ClaimSpec } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { Outcome } from "../../runtime/index.ts";
import { openUnknownRecord, type OperationRecord } from "../operations/index.ts";
import { waitForOpen, type OpenOperation } from "./next.ts";
import { needsPower, see } from "./sight.ts";
import type { VmView } from "./status.ts";
import { traitsOf } from "./steps.ts";
import { writeView, type ConnectedTurn } from "./turn.ts";
import { waitVm } from "./waiting.ts";

/** The step of a record that replaces whatever the lost status said. */
const recoverStep = "Recover";
const intent = "Wait for requests that may have been sent before the status was lost.";

/**
 * The id is in the status before the Claim is one for which something may be sent. So a status
 * without it, beside such a Claim, was lost, and with it the record of an operation that may still
 * take effect: a VM that is created later, under an id that was given up meanwhile, or by a second
 * request. A record of an unknown operation takes its place, and its whole window counts from now.
 */
export async function recoverRecord(turn: ConnectedTurn, paused?: VmView["state"]): Promise<void> {
  const { claim, vm } = turn;
  if (claim === undefined || guard("status-not-lost", vm.status?.externalId !== undefined)) return;
  const { reason } = traitsOf(recoverStep);
  const operation = unknownRecord(turn);
  const state = paused ?? ({ is: "working", reason, message: intent } as const);
  await writeView(turn, { state, operation });
}

/** Stands for whatever was sent for the VM, by whomever, and may still take effect. */
export function unknownRecord({ deps }: Pick<ConnectedTurn, "deps">): OperationRecord {
  const { windowMs } = traitsOf(recoverStep);
  return openUnknownRecord({ step: recoverStep, intent, windowMs }, deps);
}

export function isRecovering({ step }: Pick<OperationRecord, "step">): boolean {
  return step === recoverStep;
}

/** Work that was begun before the status was lost is found from when the id was reserved. */
export function recoveredSince(
  record: OperationRecord,
  { reservedAt = record.since }: ClaimSpec,
): { readonly sinceMs?: number } {
  return isRecovering(record) ? { sinceMs: Date.parse(reservedAt) } : {};
}

/** Until nothing can arrive any more the VM is observed, and nothing is decided about it. */
export async function waitRecovered(turn: ConnectedTurn, open: OpenOperation): Promise<Outcome> {
  const { claim } = turn;
  if (claim !== undefined) turn.seen = await see(turn, claim, !needsPower(turn, claim.spec));
  return waitVm(turn, waitForOpen({ open }));
}
