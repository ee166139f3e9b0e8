import type { ClaimSpec } from "../../api/index.ts";
import type { Turn } from "./turn.ts";

/** Says what became of the machine whose object goes, once its Claim says so. */
export function tellEnd(
  { deps, vm }: Pick<Turn, "deps" | "vm">,
  { externalId }: ClaimSpec,
  how: "Retire" | "Release" | "Nothing",
): void {
  if (how === "Nothing") return;
  const isGone = how === "Retire";
  const message = isGone
    ? `The machine ${externalId} is gone from the hypervisor.`
    : `The machine ${externalId} stays on the hypervisor and is let go.`;
  deps.events.event(vm, { type: "Normal", reason: isGone ? "Deleted" : "Released", message });
}
