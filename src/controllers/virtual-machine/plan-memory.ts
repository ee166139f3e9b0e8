import type { ClaimSpec } from "../../api/index.ts";
import { isProvenOurs, type Failure, type Leftover, type Machine } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { probableChange } from "./plan-leftovers.ts";
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
  const isAwake = machine.power === "Running" || machine.power === "Paused";
  if (!guard("saved-memory-of-awake-vm", isAwake)) return undefined;
  const saved = machine.volumes.find(({ role, isOwn }) => role === "State" && isOwn);
  if (saved === undefined) return undefined;
  const at = basisOf(machine);
  const operation = { kind: "destroyDisk", claim, at, volume: saved.id } as const;
  const intent = `Remove the saved memory ${saved.id}: the machine runs without it.`;
  return stepOrWait(input, { name: "DestroyDisk", operation, intent }, machine.lock);
}

/**
 * Before memory is saved: a suspend that died earlier may have made its volume and written it down
 * nowhere. The next one of the same day would find its name taken. What is provably ours goes; what
 * is not is for a person to decide, and no request is sent that can only fail.
 */
export function planVmMemoryFree(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  if (input.leftovers === undefined) return { do: "sweep" };
  const saved = input.leftovers.filter(({ isSavedMemory }) => isSavedMemory === true);
  const left = saved.find(({ proof }) => isProvenOurs({ proof }));
  if (left === undefined) return planVmNameTaken(input, claim, saved);
  const { volume, node } = left;
  const operation = { kind: "removeVolume", claim, node, volume } as const;
  const intent = `Remove the volume ${volume}, which a suspend that failed left behind.`;
  return stepOrWait(input, { name: "RemoveVolume", operation, intent }, machine.lock);
}

/** A program that makes a volume may end after all that its worker left was accounted for. */
function planVmNameTaken(
  { leftovers = [], nowMs }: PlanInput,
  claim: ClaimSpec,
  saved: readonly Leftover[],
): Next | undefined {
  const taken = saved.find(({ day = "" }) => isToday(day, nowMs));
  if (taken === undefined) return undefined;
  const change = probableChange(claim, leftovers, nowMs);
  if (change !== undefined) return { do: "record", change };
  return { do: "fail", failure: nameTaken(claim, taken) };
}

const hourMs = 3_600_000;

/** Whether it is that day anywhere on earth: where the hypervisor is, nobody knows. */
function isToday(day: string, nowMs: number): boolean {
  const days = [nowMs - 12 * hourMs, nowMs, nowMs + 14 * hourMs].map((ms) => {
    return new Date(ms).toISOString().slice(0, 10);
  });
  return days.includes(day);
}

function nameTaken({ externalId }: ClaimSpec, { volume, node, proof }: Leftover): Failure {
  const isProbable = proof === "Probable";
  const whose = isProbable ? "probably left by a suspend that failed" : "not provably Berth's";
  return {
    category: "OrphanedVolumes",
    message:
      `The VM ${externalId} cannot be suspended today: the volume ${volume} on ${node} has the ` +
      `name that its saved memory would get, and is ${whose}.`,
    remedy: isProbable
      ? `If nobody needs it: berth orphans destroy ${volume}. Berth then retries.`
      : "If nobody needs it, remove it on the hypervisor. Berth then retries.",
  };
}
