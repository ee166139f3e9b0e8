import type { ClaimSpec } from "../../api/index.ts";
import type { Failure, Machine, SeenVolume } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { Next, PlanInput } from "./next.ts";
import { sizeText } from "./quantities.ts";
import { isStillThat, judgeVolume, type Judgement } from "./volume-ownership.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** One machine, and what is known of it. */
interface At {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

/**
 * A declared disk in whose place is a volume that is not Berth's, or whose own volume is in another
 * place: nothing is attached, detached, grown, moved or destroyed before a person has put that
 * right.
 */
export function planVmForeignVolumes(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  const at = { claim, machine };
  for (const { name } of input.declared.disks) {
    const failure = failureOf(input, at, name);
    const isOwn = guard("disk-volume-own", failure === undefined);
    if (!isOwn && failure !== undefined) return { do: "fail", failure };
  }
  for (const name of input.declared.absentDisks ?? []) {
    const failure = strangerFailure(input, at, name);
    const isOwn = guard("absent-disk-volume-own", failure === undefined);
    if (!isOwn && failure !== undefined) return { do: "fail", failure };
  }
  const isDoubted = planVmVolumesInDoubt(input, claim, machine) !== undefined;
  return isDoubted && input.isUnlisted !== true ? { do: "sweep", mayFail: true } : undefined;
}

/** Only a complete list of the storages tells whether a volume was renamed or replaced. */
export function planVmVolumesInDoubt(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  // What is under way may just be changing names.
  if (input.leftovers !== undefined || input.open !== undefined) return undefined;
  return hasVolumesInDoubt(input, claim, machine) ? { do: "sweep" } : undefined;
}

/** Whether there is a disk of which only a list of the storages tells whose it is. */
export function hasVolumesInDoubt(input: PlanInput, claim: ClaimSpec, machine: Machine): boolean {
  const names = Object.keys(machine.mark?.disks ?? {});
  const small = machine.volumes.filter(({ role }) => role === "Firmware" || role === "TPM");
  const seen = [...names.flatMap((name) => occupantOf(machine, name) ?? []), ...small];
  return seen.some((one) => judgementOf(input, { claim, machine }, one)?.is === "InDoubt");
}

/** What is in the place of a disk. */
function occupantOf({ volumes }: Machine, name: string): SeenVolume | undefined {
  return volumes.find(({ role, disk, state }) => {
    return role === "Disk" && disk === name && state === "Attached";
  });
}

/** Undefined where the Claim has it. */
function judgementOf(input: PlanInput, at: At, seen: SeenVolume): Judgement | undefined {
  if (at.claim.volumes?.some(({ id }) => id === seen.id) === true) return undefined;
  return judgeVolume({ ...input, ...input.declared }, at, seen);
}

/**
 * A person's volume in the place of a disk that is to be destroyed. Once Berth's own is gone,
 * nothing would tell the person's from a disk that somebody renamed: so that goes first.
 */
function strangerFailure(input: PlanInput, at: At, name: string): Failure | undefined {
  const seen = occupantOf(at.machine, name);
  const judgement = seen && judgementOf(input, at, seen);
  if (seen === undefined || judgement?.is !== "Strange") return undefined;
  return strange(at, name, { seen, own: judgement.own });
}

function failureOf(input: PlanInput, at: At, name: string): Failure | undefined {
  const { claim, machine } = at;
  const seen = occupantOf(machine, name);
  if (seen === undefined) return awayFailure(at, name);
  const known = claim.volumes?.find(({ id }) => id === seen.id);
  if (known === undefined) return strangerFailure(input, at, name);
  // A volume that has no disk's name was handed over, or is awaited.
  if (known.disk !== undefined && known.disk !== name) return swapped(at, name, known);
  return isStillThat(known, seen) ? undefined : strange(at, name, { seen, own: known });
}

/** The disk's own volume, where somebody put it into another slot; or another of that name. */
function awayFailure({ claim, machine }: At, name: string): Failure | undefined {
  const recorded = (claim.volumes ?? []).filter(
    ({ role, disk }) => role === "Disk" && disk === name,
  );
  for (const known of recorded.toReversed()) {
    const seen = machine.volumes.find(({ id, state }) => id === known.id && state === "Attached");
    if (seen === undefined) continue;
    const slot = slotOf(machine, known.id);
    return isStillThat(known, seen)
      ? elsewhere({ claim, machine }, name, { known, slot })
      : usedAgain(name, { known, seen, slot });
  }
  return undefined;
}

function slotOf({ disks }: Machine, volume: string): string {
  return disks.find((disk) => disk.volume === volume)?.slot ?? "another slot";
}

function strange(
  { claim, machine }: At,
  name: string,
  { seen, own }: { readonly seen: SeenVolume; readonly own?: ClaimVolume | undefined },
): Failure {
  const slot = machine.mark?.disks[name] ?? "";
  const ownIs = own === undefined ? "Berth has made none yet" : whereIs(own, { claim, machine });
  return {
    category: "IdentityConflict",
    message:
      `Somebody put the volume ${seen.id} in the place of the disk ${name} (${slot}): ` +
      `nothing proves that it is Berth's. ${ownIs}. Berth never destroys the volume.`,
    remedy:
      `Detach ${slot} of VM ${claim.externalId} on the hypervisor (its data stays); ` +
      "Berth continues by itself.",
  };
}

function whereIs(own: ClaimVolume, { machine }: At): string {
  const seen = machine.volumes.find(({ id }) => id === own.id);
  const size = own.size === undefined ? "" : ` (${sizeText(Number(own.size))})`;
  const what = `Berth's own volume of this disk is ${own.id}${size}`;
  if (seen === undefined) return `${what}, which is not in the VM`;
  if (seen.state === "Detached") return `${what}, which is detached`;
  return `${what}, as it was recorded`;
}

function swapped({ claim, machine }: At, name: string, known: ClaimVolume): Failure {
  const slot = machine.mark?.disks[name] ?? "";
  return {
    category: "IdentityConflict",
    message:
      `Somebody put the volume ${known.id} of the disk ${known.disk ?? ""} in the place of the ` +
      `disk ${name} (${slot}).`,
    remedy:
      `Detach ${slot} of VM ${claim.externalId} on the hypervisor (its data stays); ` +
      "Berth attaches each disk in its own place again.",
  };
}

function elsewhere(
  { claim, machine }: At,
  name: string,
  { known, slot }: { readonly known: ClaimVolume; readonly slot: string },
): Failure {
  const own = machine.mark?.disks[name] ?? "";
  return {
    category: "IdentityConflict",
    message:
      `Somebody attached the volume ${known.id} of the disk ${name} as ${slot}; ` +
      `its place is ${own}. Berth does not attach it a second time.`,
    remedy:
      `Detach ${slot} of VM ${claim.externalId} on the hypervisor (its data stays); ` +
      `Berth attaches it as ${own} again.`,
  };
}

function usedAgain(
  name: string,
  { known, seen, slot }: { readonly known: ClaimVolume; readonly seen: SeenVolume; slot: string },
): Failure {
  const bytes = (text: number): string => sizeText(text);
  return {
    category: "IdentityConflict",
    message:
      `The volume ${known.id} of the disk ${name} is gone, and somebody uses its name for another ` +
      `one: ${slot} has ${bytes(seen.sizeBytes ?? 0)}, recorded are ` +
      `${bytes(Number(known.size ?? 0))}. Berth neither attaches nor destroys it.`,
    remedy:
      "Put the disk's own volume back under its name, or remove the entry of the disk from " +
      "spec.disks.",
  };
}
