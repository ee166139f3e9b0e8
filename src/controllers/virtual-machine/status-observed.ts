import type { ClaimSpec, VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import type { Machine, Seen } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";

/** As many devices as the status lists that nobody declared. */
const undeclaredMax = 32;

/** What the status says of what was seen. What was not looked at stays as it was. Pure. */
export function observedPart(
  vm: VirtualMachine,
  seen: Seen | undefined,
  claim: ClaimSpec | undefined,
): Partial<VirtualMachineStatus> {
  if (seen?.at === "unknown" && vm.status?.powerState) return { powerState: "Unknown" };
  if (seen?.at !== "ours") return {};
  const { machine } = seen;
  const { externalId, node, power } = machine;
  return {
    externalId,
    node,
    // A machine in the making is not asked for its power.
    ...(power === "Unknown" && claim?.everStood !== true ? {} : { powerState: power }),
    disks: disksOf(machine),
    ...detachedPart(vm, machine, claim),
    networks: networksOf(machine),
    undeclared: undeclaredDevices(vm, machine),
  };
}

function disksOf({ disks }: Machine): NonNullable<VirtualMachineStatus["disks"]> {
  return disks.flatMap(({ name, slot, volume, storage, sizeBytes }) => {
    if (name === undefined) return [];
    return [{ name, volume, storage, size: String(sizeBytes), device: slot }];
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
): NonNullable<VirtualMachineStatus["undeclared"]> {
  const present = spec.disks?.filter(({ state }) => state !== "Absent") ?? [];
  const declared = new Set(present.map(({ name }) => name));
  const disks = machine.disks
    .filter(({ name }) => name === undefined || !declared.has(name))
    .map(({ slot, volume }) => ({ kind: "Disk" as const, device: slot, detail: volume }));
  const networks = machine.networks
    .filter(({ name }) => name === undefined)
    .map(({ slot }) => ({ kind: "Network" as const, device: slot }));
  return [...disks, ...networks].slice(0, undeclaredMax);
}
