import type { ClaimSpec } from "../../api/index.ts";
import { annotationOf, type Turn } from "./turn.ts";
import { listText } from "../../kernel/list-text.ts";

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
  const why = isGone ? undefined : annotationOf(vm.metadata, "forget");
  if (why === undefined) {
    return deps.events.event(vm, {
      type: "Normal",
      reason: isGone ? "Deleted" : "Released",
      message,
    });
  }
  const told = `${message} Forgotten: ${why}`.slice(0, 1024);
  deps.events.event(vm, { type: "Warning", reason: "Forgotten", message: told });
}

/** Volumes that may have been the machine's: a person decides about them, as Orphans. */
export function tellStaying(
  { deps, vm }: Pick<Turn, "deps" | "vm">,
  { externalId }: ClaimSpec,
  stays: readonly string[],
): void {
  const message =
    `Volumes under the id ${externalId} stay, because nothing proves that they are this object's: ` +
    `${listText(stays)}. See berth orphans.`;
  deps.events.event(vm, {
    type: "Warning",
    reason: "VolumesStay",
    message: message.slice(0, 1024),
  });
}

/** A disk that the spec says to delete, and that stays all the same. */
export function tellFollowed(
  { deps, vm }: Pick<Turn, "deps" | "vm">,
  { externalId }: ClaimSpec,
  { id, disk }: { readonly id: string; readonly disk: string },
): void {
  const message =
    `The volume ${id} of the disk ${disk} is kept in the disk-holder VM ${externalId}: somebody ` +
    "renamed or moved it by hand, so Berth does not destroy it. Remove it there if nobody needs it.";
  deps.events.event(vm, {
    type: "Warning",
    reason: "VolumesStay",
    message: message.slice(0, 1024),
  });
}
