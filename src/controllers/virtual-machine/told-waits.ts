import type { VirtualMachine } from "../../api/index.ts";
import type { Reports } from "../reports/index.ts";
import type { VmState } from "./status.ts";
import { isSameWait, waitingSummary, type Waiting } from "./status-waiting.ts";

/** The part of a run that tells of waits. */
interface Waiter {
  readonly deps: { readonly reports: Reports };
  readonly memory: { toldWait?: Waiting | undefined };
  readonly vm: VirtualMachine;
}

/** Waits that somebody else has to end, and that a machine which runs shows to nobody. */
const toldKinds: ReadonlySet<Waiting["kind"]> = new Set(["Lock", "Approval"]);

/** A wait that cannot be put off: it has just begun, or it is all that is said of an edit. */
export function isNewsOfWait({ vm }: Waiter, state: VmState): boolean {
  if (state.is !== "waiting") return false;
  const { waitingFor: old, observedGeneration } = vm.status ?? {};
  if (observedGeneration !== vm.metadata.generation) return true;
  const wait = toldWaitOf(state);
  return wait !== undefined && (old === undefined || !isSameWait(old, wait));
}

/**
 * Tells of a wait when its status was written, and once only. What the status said before counts,
 * because another process may have told it; an attempt in between that was blocked ends no wait.
 */
export function tellWait({ deps, memory, vm }: Waiter, state: VmState, old?: Waiting): void {
  const known = old ?? memory.toldWait;
  const wait = toldWaitOf(state);
  memory.toldWait = state.is === "working" ? known : wait;
  if (wait === undefined || (known !== undefined && isSameWait(known, wait))) return;
  deps.reports.waits(vm, { for: wait.kind, ...waitingSummary(wait) });
}

function toldWaitOf(state: VmState): Waiting | undefined {
  const isTold = state.is === "waiting" && toldKinds.has(state.waitingFor.kind);
  return isTold ? state.waitingFor : undefined;
}
