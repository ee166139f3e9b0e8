import type { ClaimSpec } from "../../api/index.ts";
import type { Failure, Leftover } from "../../hypervisor/index.ts";
import type { Next, PlanInput } from "./next.ts";
import { listText } from "../../kernel/list-text.ts";

/**
 * A VM that existed, is gone, and is not to be recreated. Whether its disks are gone as well is
 * looked up first: whoever decides what to do has to know.
 */
export function planVmMissing(input: PlanInput, claim: ClaimSpec): Next {
  const { leftovers, isUnlisted } = input;
  const hasDisks = (claim.volumes ?? []).length > 0;
  if (hasDisks && leftovers === undefined && isUnlisted !== true) {
    return { do: "sweep", mayFail: true };
  }
  return { do: "fail", failure: missing(claim, leftovers) };
}

function missing(claim: ClaimSpec, leftovers: readonly Leftover[] | undefined): Failure {
  const { externalId, hypervisor, volumes = [] } = claim;
  const category = "Missing";
  const message = `The machine ${externalId} once stood on ${hypervisor.name} and is gone.`;
  const known = new Set(volumes.map(({ id }) => id));
  const left = (leftovers ?? []).map(({ volume }) => volume).filter((id) => known.has(id));
  if (left.length > 0) {
    return {
      category,
      message: `${message} Disks of it still exist: ${listText(left)}.`,
      remedy:
        "To keep their data, restore the configuration of the VM under this id, or copy them " +
        "first: if you delete the object, Berth destroys them, except those with onDelete: " +
        "Retain. With spec.onMissing: Recreate, Berth creates the VM anew once they are gone.",
    };
  }
  const isUnknown = volumes.length > 0 && leftovers === undefined;
  const data = isUnknown ? "nobody can see now whether its disks exist" : "its disks' data is gone";
  return {
    category,
    message,
    remedy:
      `Set spec.onMissing: Recreate to make it anew from its source (${data}), ` +
      "or delete the object.",
  };
}
