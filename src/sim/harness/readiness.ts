import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import type { Condition } from "../../kernel/object.ts";

/** Ready, and that was said of what is declared now. */
export function isReady(vm: VirtualMachine): boolean {
  return vm.status?.observedGeneration === vm.metadata.generation && isSaidReady(vm);
}

/** What every status says of itself. */
interface Saying {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
}

/** Ready, of whatever was declared when that was said. */
export function isSaidReady({ status }: Saying): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
}

/**
 * Whether a machine may be otherwise than declared, at rest: it says so, and it is declared that
 * nobody restarts it for that, or it is suspended and keeps its form with its memory; or it went
 * off, and is to stay so, before it was restarted for what its next start brings.
 */
export function mayWait({ spec, status }: VirtualMachine): boolean {
  const said = status?.conditions?.find(({ type, status: is }) => {
    return type === "Synced" && is === "False";
  });
  const isOff = spec.powerState === "Stopped" && said?.reason === "RestartRequired";
  const isAllowed = spec.updatePolicy === "Live" || spec.powerState === "Suspended" || isOff;
  return said !== undefined && isAllowed;
}

export function isPaused({ metadata }: Pick<VirtualMachine, "metadata">): boolean {
  return metadata.annotations?.[annotations.paused] === "true";
}
