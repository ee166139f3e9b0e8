import type { VmView } from "./status.ts";
import { isSameWait, waitingSummary, type Waiting } from "./status-waiting.ts";
import type { Turn } from "./turn.ts";

/** Waits that somebody else has to end, and that a machine which runs shows to nobody. */
const toldKinds: ReadonlySet<Waiting["kind"]> = new Set(["Lock", "Approval"]);

/** A wait that cannot be put off: it has just begun, or it is all that is said of an edit. */
export function isNewsOfWait({ vm }: Turn, { state }: VmView): boolean {
  if (state.is !== "waiting") return false;
  const { waitingFor: old, observedGeneration } = vm.status ?? {};
  if (observedGeneration !== vm.metadata.generation) return true;
  const { waitingFor } = state;
  return toldKinds.has(waitingFor.kind) && (old === undefined || !isSameWait(old, waitingFor));
}

/**
 * Tells of a wait when its status was written, and once only. What the status said before counts,
 * because another process may have told it; an attempt in between that was blocked ends no wait.
 */
export function tellWait({ deps, memory, vm }: Turn, { state }: VmView, old?: Waiting): void {
  if (state.is === "working") {
    const { kind, name } = old ?? {};
    if (kind !== undefined && name !== undefined) memory.toldWait ??= { kind, name };
    return;
  }
  const told = old ?? memory.toldWait;
  delete memory.toldWait;
  if (state.is !== "waiting" || !toldKinds.has(state.waitingFor.kind)) return;
  const { waitingFor } = state;
  memory.toldWait = waitingFor;
  if (told !== undefined && isSameWait(told, waitingFor)) return;
  deps.reports.waits(vm, { for: waitingFor.kind, ...waitingSummary(waitingFor) });
}
