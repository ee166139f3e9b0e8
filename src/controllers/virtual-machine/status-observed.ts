import type { ClaimSpec, VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import { isProvenVolume, type Machine, type Seen } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";

/** As many devices as the status lists that nobody declared. */
const undeclaredMax = 32;

/** Of these a status says nothing unless the VM was observed. */
export type ObservedFields = {
  [Field in (typeof observedFields)[number]]?: VirtualMachineStatus[Field] | undefined;
};

const observedFields = [
  "appliedGeneration",
  "powerState",
  "addresses",
  "disks",
  "detachedDisks",
  "networks",
  "undeclared",
] as const;

/** What the status says of what was seen. What was not looked at stays as it was. Pure. */
export function observedPart(
  vm: VirtualMachine,
  seen: Seen | undefined,
  claim: ClaimSpec | undefined,
): Partial<Omit<VirtualMachineStatus, keyof ObservedFields>> & ObservedFields {
  switch (seen?.at) {
    case undefined:
      return {};
    case "absent":
      // The VM does not exist, so nothing of it was observed: not its power, its disks or its NICs.
      return Object.fromEntries(observedFields.map((field) => [field, undefined]));
    case "unknown":
    case "opaque":
    case "foreign":
      return vm.status?.powerState === undefined ? {} : { powerState: "Unknown" };
    case "ours":
      return seenPart(vm, seen.machine, claim);
  }
}

function seenPart(
  vm: VirtualMachine,
  machine: Machine,
  claim: ClaimSpec | undefined,
): Partial<VirtualMachineStatus> {
  const { externalId, node, power } = machine;
  return {
    externalId,
    node,
    // A machine in the making is not asked for its power.
    ...(power === "Unknown" && claim?.everExisted !== true ? {} : { powerState: power }),
    disks: disksOf(machine),
    ...detachedPart(vm, machine, claim),
    networks: networksOf(machine),
    undeclared: undeclaredDevices(vm, machine, claim),
  };
}

function disksOf(machine: Machine): NonNullable<VirtualMachineStatus["disks"]> {
  const named = machine.disks.flatMap(({ name, slot, volume, storage, sizeBytes }) => {
    if (name === undefined) return [];
    return [{ name, volume, storage, size: String(sizeBytes), device: slot }];
  });
  return [...named, ...leavingDisks(machine)];
}

/** One that goes with the next restart is there until then. */
export function hasDisk(machine: Machine, name: string): boolean {
  return disksOf(machine).some((disk) => disk.name === name);
}

/** Disks that the VM has until its next start, which removes them. */
function leavingDisks({
  disks,
  volumes,
  mark,
}: Machine): NonNullable<VirtualMachineStatus["disks"]> {
  // Where another volume takes its place with the next start, that one is told.
  const isKnown = (id: string, name: string | undefined): boolean => {
    return disks.some((disk) => disk.volume === id || disk.name === name);
  };
  return volumes.flatMap(({ id, disk: name, role, state, storage, sizeBytes = 0 }) => {
    const isLeaving = role === "Disk" && state === "Attached" && !isKnown(id, name);
    const device = mark?.disks[name ?? ""];
    if (!isLeaving || name === undefined || device === undefined) return [];
    return [{ name, volume: id, storage, size: String(sizeBytes), device }];
  });
}

/** Disks that are the machine's and that it does not use now. */
function detachedPart(
  { status }: VirtualMachine,
  machine: Machine,
  claim: ClaimSpec | undefined,
): Pick<VirtualMachineStatus, "detachedDisks"> {
  const used = new Set(machine.disks.map(({ name }) => name));
  const detached = (claim?.volumes ?? []).flatMap(({ id, disk, storage, size, state, since }) => {
    if (state !== "Detached" || disk === undefined || used.has(disk)) return [];
    return [[disk, defined({ name: disk, volume: id, storage, size, since })] as const];
  });
  const detachedDisks = [...new Map(detached).values()];
  // Where there never were any there is nothing to say.
  const isSaid = detachedDisks.length > 0 || status?.detachedDisks !== undefined;
  return isSaid ? { detachedDisks } : {};
}

function networksOf({ networks }: Machine): NonNullable<VirtualMachineStatus["networks"]> {
  return networks.flatMap(({ name, slot, macAddress }) => {
    if (name === undefined) return [];
    return [{ name, device: slot, ...(macAddress === undefined ? {} : { macAddress }) }];
  });
}

function undeclaredDevices(
  { spec }: VirtualMachine,
  machine: Machine,
  claim: ClaimSpec | undefined,
): NonNullable<VirtualMachineStatus["undeclared"]> {
  const present = spec.disks?.filter(({ state }) => state !== "Absent") ?? [];
  const declared = new Set(present.map(({ name }) => name));
  const disks = machine.disks
    .filter(({ name }) => name === undefined || !declared.has(name))
    .map(({ slot, volume }) => ({ kind: "Disk" as const, device: slot, detail: volume }));
  const networks = machine.networks
    .filter(({ name }) => name === undefined)
    .map(({ slot }) => ({ kind: "Network" as const, device: slot }));
  return [...disks, ...unprovenDrives(machine, claim), ...networks].slice(0, undeclaredMax);
}

/** Firmware variables and TPM states that Berth did not make: they stay when the VM is deleted. */
function unprovenDrives(
  { volumes }: Machine,
  claim: ClaimSpec | undefined,
): NonNullable<VirtualMachineStatus["undeclared"]> {
  // Before the VM exists, what was just made is not in the Claim yet.
  if (claim?.everExisted !== true) return [];
  return volumes.flatMap(({ id, slot }) => {
    const known = claim.volumes?.find((volume) => volume.id === id);
    if (slot === undefined || (known && isProvenVolume(known))) return [];
    return [{ kind: "Drive" as const, device: slot, detail: id }];
  });
}
