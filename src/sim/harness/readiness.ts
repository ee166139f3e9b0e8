import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";

/** Ready, and that was said of what is declared now. */
export function isReady(vm: VirtualMachine): boolean {
  return vm.status?.observedGeneration === vm.metadata.generation && isSaidReady(vm);
}

/** Ready, of whatever was declared when that was said. */
export function isSaidReady({ status }: Pick<VirtualMachine, "status">): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
}

/**
 * Whether a machine may be otherwise than declared, at rest: it says so, and it is declared that
 * nobody restarts it for that, or it is suspended and keeps its form with its memory.
 */
export function mayWait({ spec, status }: VirtualMachine): boolean {
  const isSaid = status?.conditions?.some(({ type, status: is }) => {
    return type === "Synced" && is === "False";
  });
  const isAllowed = spec.updatePolicy === "Live" || spec.powerState === "Suspended";
  return isSaid === true && isAllowed;
}

export function isPaused({ metadata }: Pick<VirtualMachine, "metadata">): boolean {
  return metadata.annotations?.[annotations.paused] === "true";
}
