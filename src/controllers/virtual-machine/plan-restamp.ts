import { createHash } from "node:crypto";
import type { ClaimSpec, VirtualMachineStatus } from "../../api/index.ts";
import { proposeNames } from "../../hypervisor/index.ts";
import type { Failure, ForeignSeen, Machine } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { basisOf, stepOrWait, type Next, type PlanInput } from "./next.ts";

type Plan = NonNullable<VirtualMachineStatus["plan"]>;

/**
 * A machine with the right id and identity whose mark somebody edited away. Nothing proves that it
 * is ours, so nothing is done; but a person may say so, by approving the one change that is named
 * here. The hash names the machine as it is now: once anything of it changes, it approves nothing.
 */
export function planVmRestamp(
  input: PlanInput,
  claim: ClaimSpec,
  { seen, failure }: { readonly seen: ForeignSeen; readonly failure: Failure },
): Next {
  const { machine } = seen;
  const isOurs = machine !== undefined && machine.identity === claim.identity;
  if (!isOurs || input.declared.isDeleting) return { do: "fail", failure };
  const plan = restampPlan(claim, machine, seen.detail);
  if (!guard("restamp-approved", input.approved === plan.hash))
    return { do: "fail", failure, plan };
  const operation = {
    kind: "stamp",
    claim,
    at: basisOf(machine),
    ...slotsOf(input, claim, machine),
    adopt: true,
  } as const;
  const intent = `Write Berth's mark back into the machine ${claim.externalId}.`;
  return stepOrWait(input, { name: "WriteMarker", operation, intent }, machine.lock);
}

function restampPlan(claim: ClaimSpec, machine: Machine, detail: string): Plan {
  const { externalId, identity, owner } = claim;
  const named = JSON.stringify(["restamp", externalId, identity, machine.version]);
  const hash = createHash("sha256").update(named).digest("hex").slice(0, 16);
  const to = `the mark of ${owner.namespace}/${owner.name}`.slice(0, 256);
  const note = "Only the mark is written: the rest of the description stays as it is.";
  return {
    hash,
    changes: [{ field: "mark", from: detail.slice(0, 256), to, effect: "Live", note }],
  };
}

/** Where the named parts sit: disks by the Claim's volumes, cards as they were last seen. */
function slotsOf(
  { declared, lastNetworks = {} }: PlanInput,
  { volumes = [] }: ClaimSpec,
  machine: Machine,
): Record<"disks" | "networks", { name: string; slot: string }[]> {
  const known = volumes.flatMap(({ id, disk }) => {
    const slot = machine.disks.find(({ volume }) => volume === id)?.slot;
    return disk === undefined || slot === undefined ? [] : [[disk, slot] as const];
  });
  const proposed = proposeNames(declared.shape, machine);
  const isThere = (slot: string): boolean => machine.networks.some((card) => card.slot === slot);
  const cards = Object.entries(lastNetworks).filter(([, slot]) => isThere(slot));
  return {
    disks: placed(known.length > 0 ? known : Object.entries(proposed.disks)),
    networks: placed(cards.length > 0 ? cards : Object.entries(proposed.networks)),
  };
}

function placed(slots: readonly (readonly [string, string])[]): { name: string; slot: string }[] {
  return slots.map(([name, slot]) => ({ name, slot }));
}
