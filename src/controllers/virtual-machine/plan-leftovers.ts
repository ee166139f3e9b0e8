import type { ClaimSpec } from "../../api/index.ts";
import { isProvenOurs, type Leftover, type Lock } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { isUnsettled, stepOrWait, waitForOpen, type Next, type PlanInput } from "./next.ts";
import { guard } from "../../kernel/guard.ts";

type ProbableVolume = NonNullable<ClaimSpec["probableVolumes"]>[number];

/**
 * What the last operation that makes volumes left behind is accounted for before the next one
 * allocates again: what is provably ours is removed, and what is only probably ours is recorded, to
 * be counted and reported. So no number of dead workers can fill a storage unnoticed.
 */
export function planVmAllocationSettled(
  input: PlanInput,
  claim: ClaimSpec,
  lock: Lock | undefined,
): Next | undefined {
  const { allocation } = claim;
  if (allocation === undefined || allocation.settledAt !== undefined) return undefined;
  // Neither judged nor forgotten by a next allocation, while what it left may still be removed.
  if (!guard("allocation-operation-settled", !isUnsettled(input))) return waitForOpen(input);
  if (input.leftovers === undefined) return { do: "sweep" };
  const going = input.leftovers
    .filter((one) => guard("failed-attempt-proven-ours", isProvenOurs(one)))
    .find((one) => guard("failed-attempt-may-go", mayGo(claim, one)));
  if (going !== undefined) {
    const { volume, node } = going;
    const operation = { kind: "removeVolume", claim, node, volume } as const;
    const intent = `Remove the volume ${volume}, which a failed attempt left behind.`;
    return stepOrWait(input, { name: "RemoveVolume", operation, intent }, lock);
  }
  const settled = { ...allocation, settledAt: formatTime(input.nowMs) };
  const probableVolumes = probableNow(claim, input.leftovers, input.nowMs);
  return { do: "record", change: { allocation: settled, probableVolumes } };
}

/**
 * The request for a volume by name rests on no version of the VM: it may take effect whatever was
 * done meanwhile, also after the VM was destroyed. So nothing is, while it may.
 */
export function planVmNamedSettled(input: PlanInput, { allocation }: ClaimSpec): Next | undefined {
  if (allocation?.volume === undefined || allocation.settledAt !== undefined) return undefined;
  const isOver = guard("named-volume-request-over", !isUnsettled(input));
  return isOver ? undefined : waitForOpen(input);
}

/** What the Claim does not say yet of volumes that are probably ours. */
export function probableChange(
  claim: ClaimSpec,
  leftovers: readonly Leftover[],
  nowMs: number,
): Pick<ClaimSpec, "probableVolumes"> | undefined {
  const { probableVolumes: known = [] } = claim;
  const isNew = leftovers.some(({ proof, volume }) => {
    return proof === "Probable" && !known.some(({ id }) => id === volume);
  });
  return isNew ? { probableVolumes: probableNow(claim, leftovers, nowMs) } : undefined;
}

/** A disk that was detached or has to stay is no leftover of a failed attempt. */
function mayGo({ volumes = [] }: ClaimSpec, { volume }: Leftover): boolean {
  const known = volumes.find(({ id }) => id === volume);
  return known === undefined || (known.disk === undefined && known.onDelete !== "Retain");
}

/** Those that are still there, as they were recorded first, and those that are new. */
function probableNow(
  { probableVolumes = [], allocation }: ClaimSpec,
  leftovers: readonly Leftover[],
  nowMs: number,
): ProbableVolume[] {
  return leftovers
    .filter(({ proof }) => proof === "Probable")
    .slice(0, probableMax)
    .map(({ volume: id, storage, node, sizeBytes, evidence = [] }) => {
      const known = probableVolumes.find((one) => one.id === id);
      const seenAt = formatTime(nowMs);
      const operation = allocation?.operation ?? "";
      const size = String(sizeBytes);
      return known ?? { id, storage, node, size, operation, seenAt, evidence: [...evidence] };
    });
}

/** As many as a Claim holds. The budget of a storage is used up long before. */
const probableMax = 64;
