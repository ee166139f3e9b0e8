import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { basisOf, stepOrWait, type Next, type PlanInput } from "./next.ts";

/**
 * A machine that runs needs no saved memory: what it has of one was left by a suspend or a resume
 * that died. It goes before anything else is done. With it the machine could not be suspended
 * again; and once off, it would start from that memory, on disks that have changed since.
 */
export function planVmAwake(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  if (machine.power !== "Running" && machine.power !== "Paused") return undefined;
  const saved = machine.volumes.find(({ role, isOwn }) => role === "State" && isOwn);
  if (saved === undefined) return undefined;
  const at = basisOf(machine);
  const operation = { kind: "destroyDisk", claim, at, volume: saved.id } as const;
  const intent = `Remove the saved memory ${saved.id}: the machine runs without it.`;
  return stepOrWait(input, { name: "DestroyDisk", operation, intent }, machine.lock);
}

/**
 * Before memory is saved: a suspend that died earlier may have made its volume and written it down
 * nowhere. The next one would find its name taken.
 */
export function planVmMemoryFree(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  if (input.leftovers === undefined) return { do: "sweep" };
  const left = input.leftovers.find(({ proof, isSavedMemory }) => {
    return isSavedMemory === true && (proof === "Claimed" || proof === "MadeUnderMark");
  });
  if (left === undefined) return undefined;
  const { volume, node } = left;
  const operation = { kind: "removeVolume", claim, node, volume } as const;
  const intent = `Remove the volume ${volume}, which a suspend that failed left behind.`;
  return stepOrWait(input, { name: "RemoveVolume", operation, intent }, machine.lock);
}
