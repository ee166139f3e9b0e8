import type { ClaimSpec } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type {
  DiskShape,
  Failure,
  ForeignSeen,
  Lock,
  Machine,
  SeenDisk,
  Shape,
} from "../../hypervisor/index.ts";
import { deadLock } from "../failures/index.ts";
import { hasRecordedSize } from "./volume-ownership.ts";
import { basisOf, isUnsettled, stepOrWait, waitForOpen } from "./next.ts";
import type { KeeperView, Next, PlanInput } from "./next.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** A keeper that stands and is ours. */
export interface Held {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

/** It is no longer needed: destroyed if it holds nothing, else let go with what it holds. */
export function planVmKeeperClosed(input: PlanInput, claim: ClaimSpec): Next | undefined {
  const { keeper } = input;
  if (claim.diskHolder === undefined) return undefined;
  if (keeper === undefined) return { do: "dropKeeper", how: "Forget" };
  const { seen } = keeper;
  switch (seen.at) {
    case "unknown":
      return { do: "fail", failure: seen.failure };
    case "ours":
      return planVmKeeperLeft(input, { ...keeper, machine: seen.machine });
    case "opaque":
      return waitForLock(seen.lock) ?? orUnsettled(input, leftHusk(keeper.claim, seen.lock));
    case "absent":
      return orUnsettled(input, { do: "dropKeeper", how: "Retire" });
    case "foreign":
      return orUnsettled(input, planVmKeeperGiven(keeper.claim, seen));
  }
}

/** Nothing is concluded while a request of ours may still take effect. */
function orUnsettled(input: PlanInput, next: Next): Next {
  return guard("disk-holder-settled", !isUnsettled(input)) ? next : waitForOpen(input);
}

function waitForLock({ state, detail }: Lock): Next | undefined {
  return state === "Dead" ? undefined : { do: "wait", kind: "Lock", name: detail };
}

function planVmKeeperLeft(input: PlanInput, held: Held): Next {
  const { claim, machine } = held;
  const known = planVmKeeperKnown(claim, machine) ?? planVmKeeperVolumes(held);
  if (known !== undefined) return known;
  const entries = claim.volumes ?? [];
  const own = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const mayGo = (id: string): boolean => {
    return entries.some((entry) => entry.id === id && entry.onDelete === "Delete");
  };
  const isEmpty = own.every(mayGo) && !entries.some(({ onDelete }) => onDelete === "Retain");
  const at = basisOf(machine);
  if (guard("disk-holder-empty", isEmpty)) {
    const operation = { kind: "destroy", claim, at, volumes: own } as const;
    const intent = `Destroy the keeper ${claim.externalId}, which holds nothing any more.`;
    return stepOrWait(input, { name: "DestroyDiskHolder", operation, intent }, machine.lock);
  }
  const operation = { kind: "release", claim, at } as const;
  const intent = `Let the keeper ${claim.externalId} go, with the disks that it keeps.`;
  return stepOrWait(input, { name: "ReleaseDiskHolder", operation, intent }, machine.lock);
}

/**
 * The volumes of a disk-holder VM as it has them now. The name of a volume is only where it is: it
 * changes when the volume changes hands, and somebody may rename it. What it is tells its disk.
 */
function planVmKeeperVolumes({ claim, machine }: Held): Next | undefined {
  const entries = currentEntries(claim, machine);
  if (jsonEqual(entries, claim.volumes ?? [])) return undefined;
  return { do: "recordKeeper", change: { volumes: entries } };
}

/** The same before one of them is taken back: the VM's own Claim awaits it under that name, too. */
export function planVmKeeperRenamed({ volumes = [] }: ClaimSpec, held: Held): Next | undefined {
  const entries = currentEntries(held.claim, held.machine);
  const names = new Map(held.claim.volumes?.map(({ id }, i) => [id, entries[i]?.id]));
  const awaited = volumes.map((volume) => ({ ...volume, id: names.get(volume.id) ?? volume.id }));
  if (jsonEqual(awaited, volumes)) return planVmKeeperVolumes(held);
  return { do: "record", change: { volumes: awaited } };
}

function currentEntries({ volumes = [] }: ClaimSpec, machine: Machine): ClaimVolume[] {
  return volumes.map((entry) => arrived(entry, machine));
}

/** What came with its machine gone since, or was renamed, so that nobody noted it. */
function arrived(entry: ClaimVolume, { volumes, disks }: Machine): ClaimVolume {
  if (entry.onDelete !== "Retain" || volumes.some(({ id }) => id === entry.id)) return entry;
  const filled = disks.find(({ name }) => name === entry.disk);
  if (filled === undefined) return entry;
  // Nobody makes a disk larger here: of another size it is another one, in the same place.
  if (!guard("disk-holder-volume-size", hasRecordedSize(entry, filled))) return entry;
  // One that was here already, and has another name now, was renamed by somebody, or replaced.
  const isRenamed = entry.state === "Attached";
  return { ...settledEntry(entry, filled), ...(isRenamed ? { proof: "Followed" as const } : {}) };
}

/** A volume gets another name with another owner. Its size stays as it was recorded before. */
export function settledEntry(entry: ClaimVolume, { volume, sizeBytes }: SeenDisk): ClaimVolume {
  const { size = String(sizeBytes) } = entry;
  return { ...entry, id: volume, state: "Attached", size };
}

/** Where a keeper is made, and with places for which disks. */
interface KeeperPlace {
  readonly node: string;
  readonly disks: readonly DiskShape[];
}

/** A keeper that stands, is ours, and is known to be so; or what has to be done for that. */
export function planVmKeeperReady(
  input: PlanInput,
  { claim, seen }: KeeperView,
  place: KeeperPlace,
): Next | Held {
  switch (seen.at) {
    case "unknown":
      return { do: "fail", failure: seen.failure };
    case "opaque":
      return waitForLock(seen.lock) ?? orUnsettled(input, leftHusk(claim, seen.lock));
    case "absent": {
      const gone: Next = { do: "dropKeeper", how: "Retire" };
      const isNew = guard("disk-holder-never-existed", !claim.everExisted);
      return orUnsettled(input, isNew ? makeKeeper(claim, place) : gone);
    }
    case "foreign":
      return orUnsettled(input, planVmKeeperForeign(input, claim, seen));
    case "ours":
      return planVmKeeperKnown(claim, seen.machine) ?? { claim, machine: seen.machine };
  }
}

function planVmKeeperForeign(input: PlanInput, claim: ClaimSpec, seen: ForeignSeen): Next {
  const { machine, reason, detail } = seen;
  if (reason === "Released" && machine !== undefined) return adoptKeeper(input, claim, machine);
  if (!claim.everExisted) return planVmKeeperGiven(claim, seen);
  return { do: "fail", failure: keeperLost(claim, detail) };
}

/** Somebody else has the id; or it is empty, and may be what our own lost request left there. */
function planVmKeeperGiven({ everExisted }: ClaimSpec, { reason, detail }: ForeignSeen): Next {
  if (reason === "Husk") return { do: "dropKeeper", how: "Release", why: detail };
  return { do: "dropKeeper", how: everExisted ? "Release" : "Retire" };
}

/** An empty reservation whose work is dead blocks its id only: the Claim goes on saying so. */
function leftHusk(claim: ClaimSpec, lock: Lock): Next {
  const { message, remedy = "" } = deadLock(claim, lock);
  return { do: "dropKeeper", how: "Release", why: `${message} ${remedy}`.trim() };
}

function planVmKeeperKnown(claim: ClaimSpec, machine: Machine): Next | undefined {
  const { node } = machine;
  if (claim.state === "Reserved") {
    return { do: "recordKeeper", change: { state: "Bound", everExisted: true, node } };
  }
  if (claim.node !== node) return { do: "recordKeeper", change: { node } };
  const volumes = (claim.volumes ?? []).map((entry) => renamed(entry, machine));
  const isSame = jsonEqual(volumes, claim.volumes ?? []);
  return isSame ? undefined : { do: "recordKeeper", change: { volumes } };
}

/** A disk that it holds gets another name where its own was taken on the node it was moved to. */
function renamed(entry: ClaimVolume, machine: Machine): ClaimVolume {
  return entry.state === "Attached" ? arrived(entry, machine) : entry;
}

/** It has no card, is never started, and does not start with its node. */
function makeKeeper(claim: ClaimSpec, { node, disks }: KeeperPlace): Next {
  const { namespace, name } = claim.owner;
  const shape: Shape = {
    name: `${name.slice(0, 50).replaceAll(".", "-").replace(/-+$/, "")}-keeper`,
    notes:
      `Keeps disks of the VirtualMachine ${namespace}/${name}, which was deleted. ` +
      "It is never started. A VirtualMachine of the same name takes them back.",
    cpu: { cores: 1 },
    memory: { sizeBytes: keeperMemoryBytes },
    startOnBoot: false,
    disks,
  };
  const operation = { kind: "create", claim, node, shape } as const;
  const intent = `Make the keeper ${claim.externalId} on node ${node}, for disks that stay.`;
  return { do: "step", step: { name: "CreateDiskHolder", operation, intent } };
}

/** It never runs, so it takes none of this. */
const keeperMemoryBytes = 128 * 2 ** 20;

function adoptKeeper(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const disks = Object.entries(machine.mark?.disks ?? {}).map(([name, slot]) => ({ name, slot }));
  const at = basisOf(machine);
  const operation = { kind: "stamp", claim, at, disks, networks: [], adopt: true } as const;
  const intent = `Take the keeper ${claim.externalId} up again: write Berth's mark into it.`;
  return stepOrWait(input, { name: "AdoptDiskHolder", operation, intent }, machine.lock);
}

function keeperLost({ externalId, hypervisor }: ClaimSpec, detail: string): Failure {
  return {
    category: "IdentityConflict",
    message: `The keeper ${externalId} on ${hypervisor.name} is not provably Berth's: ${detail}.`,
    remedy:
      "If it is: put Berth's line back into its notes. Its disks can also be moved to another " +
      "machine on the hypervisor.",
  };
}
