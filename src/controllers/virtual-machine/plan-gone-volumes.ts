import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import type { Declared, Next, PlanInput } from "./next.ts";
import { guard } from "../../kernel/guard.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/**
 * Forgets volumes that are no more. A volume is told by its name, and a hypervisor gives a free
 * name to whatever is made next: while the Claim has that name, it would count as ours, and go.
 */
export function planVmGoneVolumes(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  if (looseVolumes(input, claim, machine).length === 0) return undefined;
  if (input.leftovers === undefined) {
    return input.isUnlisted === true ? undefined : { do: "sweep", mayFail: true };
  }
  const volumes = withoutGone(input, claim, machine);
  return volumes && { do: "record", change: { volumes } };
}

/** The Claim's volumes without those that are no more; undefined where none of them is. */
export function withoutGone(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): ClaimVolume[] | undefined {
  const { leftovers = [] } = input;
  const gone = looseVolumes(input, claim, machine).filter(({ id }) => {
    return guard("gone-volume-unlisted", !leftovers.some(({ volume }) => volume === id));
  });
  return gone.length === 0 ? undefined : without(gone, claim);
}

/** The order stays as it was, by disks: the first one is what the VM boots from. */
function without(gone: readonly ClaimVolume[], { volumes = [] }: ClaimSpec): ClaimVolume[] {
  const left = volumes.filter((volume) => !gone.includes(volume));
  const placeOf = ({ role, disk }: ClaimVolume): number => {
    return volumes.findIndex((volume) => volume.role === role && volume.disk === disk);
  };
  return left.toSorted((a, b) => placeOf(a) - placeOf(b));
}

/**
 * Volumes that nothing of the VM refers to, and that nobody misses: another one is in their place,
 * or no spec asks for their disk. What is missed, or has to stay, is remembered whatever happens.
 */
function looseVolumes(
  { declared, open }: PlanInput,
  { volumes = [] }: ClaimSpec,
  machine: Machine,
): ClaimVolume[] {
  // What is under way may just be changing names; and what snapshots refer to is in no list.
  if (!guard("gone-volumes-settled", open === undefined)) return [];
  if (!guard("gone-volumes-no-snapshots", !machine.hasSnapshots)) return [];
  return volumes.filter((volume) => {
    const isUsed = machine.volumes.some(({ id }) => id === volume.id);
    if (!guard("gone-volume-unused", !isUsed)) return false;
    return isReplaced(volume, volumes, machine) || isUnwanted(volume, declared);
  });
}

/** By another one of ours: what a person put in its place replaces nothing. */
function isReplaced(
  { role, disk }: ClaimVolume,
  known: readonly ClaimVolume[],
  { volumes }: Machine,
): boolean {
  if (role === "Disk" && disk === undefined) return false;
  const isPart = role === "Disk" || role === "Firmware" || role === "TPM";
  const isOurs = ({ id }: Machine["volumes"][number]): boolean => {
    return guard(
      "gone-volume-replaced",
      known.some((one) => one.id === id),
    );
  };
  return (
    isPart &&
    volumes.some((one) => one.role === role && one.disk === disk && isAttached(one) && isOurs(one))
  );
}

function isAttached({ state }: Machine["volumes"][number]): boolean {
  return state === "Attached";
}

function isUnwanted({ role, disk, onDelete }: ClaimVolume, declared: Declared): boolean {
  if (declared.isDeleting || role !== "Disk" || disk === undefined) return false;
  const { disks, absentDisks = [] } = declared;
  const isNamed = disks.some(({ name }) => name === disk) || absentDisks.includes(disk);
  return !isNamed && guard("gone-volume-not-retained", onDelete !== "Retain");
}
