import type { VirtualMachine } from "../../api/index.ts";
import type { Hands } from "./hands.ts";
import type { People } from "./people.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

export interface Helpers {
  readonly world: World;
  readonly people: People;
  readonly hands: Hands;
}

/**
 * Does for a machine that is stuck what its failure asks of a person. First it has to be true: what
 * the failure says must be so on the hypervisor, and it must be something that Berth may not mend.
 */
export function remedy(vm: VirtualMachine, helpers: Helpers): void {
  const { world, people, hands } = helpers;
  const name = vm.metadata.name ?? "";
  const { failure, externalId, hypervisor } = vm.status ?? {};
  const id = externalId ?? vm.spec.externalId ?? "";
  const site = world.sites.get(hypervisor ?? vm.spec.hypervisorRef.name);
  const untrue = (what: string): Violation => {
    return new Violation(7, `${name} says ${failure?.category} (${failure?.message}), but ${what}`);
  };
  if (site === undefined) throw untrue("there is no such hypervisor");
  switch (failure?.category) {
    case "Missing":
      if (site.guests.get(id)?.by === "berth") throw untrue(`${id} is there`);
      people.change(name, { spec: { onMissing: "Recreate" } });
      return;
    case "IdentityConflict": {
      if (isTakenByAnother(vm, helpers, id)) return people.delete(name);
      if (site.guests.get(id)?.by !== "person") throw untrue(`nobody else has ${id}`);
      hands.clear(site, id);
      return;
    }
    case "LockError":
      if (site.value(id, "lock") === undefined) throw untrue(`${id} has no lock`);
      // An empty reservation is of no use to anybody; a machine is.
      if (site.value(id, "name") === undefined) hands.clear(site, id);
      else hands.clearLock(site, id);
      return;
    case "OrphanedVolumes": {
      const left = [...site.guestVolumes()].filter(({ vmid }) => vmid === id);
      if (left.length === 0) throw untrue(`there is no volume of ${id}`);
      hands.clear(site, id);
      return;
    }
    case "CreationFailed": {
      // Its own disk is gone: of that machine nothing can be made any more.
      const lost = /volume '[^:']+:([^']+)' does not exist/.exec(failure.message)?.[1];
      const isLost = ![...site.guestVolumes()].some((volume) => volume.name === lost);
      if (lost !== undefined && isLost) return people.delete(name);
      throw new Violation(8, `${name} stalls: ${JSON.stringify(vm.status)}`);
    }
    default:
      throw new Violation(8, `${name} stalls: ${JSON.stringify(vm.status)}`);
  }
}

/** Two objects chose the same id: only one of them can have it. */
function isTakenByAnother(vm: VirtualMachine, { world }: Helpers, id: string): boolean {
  const claim = world.records.claimOf(vm.spec.hypervisorRef.name, id);
  return claim !== undefined && claim.spec.owner.name !== vm.metadata.name;
}

/** Law 8: reality is the spec. Read from the hypervisor's own files, not from what Berth saw. */
export function demandSpec({ metadata, spec, status }: VirtualMachine, { sites }: World): void {
  const site = sites.get(status?.hypervisor ?? "");
  const id = status?.externalId ?? "";
  const demand = (field: string, wanted: unknown, there: unknown): void => {
    if (wanted === there) return;
    throw new Violation(8, `${metadata.name} wants ${field} ${wanted}, and ${id} has ${there}`);
  };
  if (site === undefined) throw new Violation(8, `${metadata.name} is nowhere`);
  const isPending = (status?.conditions ?? []).some(({ type, status: is }) => {
    return type === "Synced" && is === "False";
  });
  demand("the name", metadata.name, site.value(id, "name"));
  demand("power", spec.powerState === "Running", site.isRunning(id));
  if (isPending) return;
  demand("cores", String(spec.cpu?.cores), site.value(id, "cores"));
  demand("memory", String(mebibytes(spec.memory?.size ?? "")), site.value(id, "memory"));
  const sizes = [...(site.text(id) ?? "").matchAll(/^scsi\d+: .*size=(\d+)G/gm)].map(
    ([, size]) => size,
  );
  for (const { name, size = "" } of spec.disks ?? []) {
    const wanted = size.replace("Gi", "");
    if (!sizes.includes(wanted)) demand(`a disk ${name} of`, wanted, sizes.join(", "));
  }
}

function mebibytes(size: string): number {
  const count = Number.parseInt(size, 10);
  return size.endsWith("Gi") ? count * 1024 : count;
}
