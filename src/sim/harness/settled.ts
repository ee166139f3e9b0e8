import type { VirtualMachine } from "../../api/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { isPaused, isReady } from "./readiness.ts";

/** As declared, and nobody deletes it. */
export function isWell(vm: VirtualMachine): boolean {
  return isReady(vm) && !isDeleting(vm) && isSettledVm(vm) && vm.status?.failure === undefined;
}

/** Stopped by something that time alone will not mend. */
export function isStuck(vm: VirtualMachine): boolean {
  return isSettledVm(vm) && !isWell(vm);
}

/** Ready, or stopped by something that it names and that time alone will not mend. */
export function isSettledVm(vm: VirtualMachine): boolean {
  if (isHeldUp(vm)) return false;
  const { operation, failure, plan } = vm.status ?? {};
  // Changes that wait for a person's word.
  if (plan !== undefined && !isDeleting(vm)) return true;
  if (isReady(vm) && !isDeleting(vm) && failure === undefined) return operation === undefined;
  return isStalled(vm) && vm.status?.observedGeneration === vm.metadata.generation;
}

/** By a person's word, or in a line in which its turn comes by itself. */
function isHeldUp(vm: VirtualMachine): boolean {
  const { kind } = vm.status?.waitingFor ?? {};
  return isPaused(vm) || kind === "Leader" || kind === "Slot";
}

function isStalled({ status }: VirtualMachine): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some((one) => one.type === "Stalled" && one.status === "True");
}

/** Of a machine, or of what it stands on. */
export function tellVm({ metadata, status }: KubeObject): string {
  return `${metadata.name}: ${JSON.stringify({ metadata, status })}`;
}

export function isDeleting({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}
