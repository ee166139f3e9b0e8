import type { ClaimSpec } from "../../api/index.ts";
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
  if (claim.keeper === undefined) return undefined;
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
  return isUnsettled(input) ? waitForOpen(input) : next;
}

function waitForLock({ state, detail }: Lock): Next | undefined {
  return state === "Dead" ? undefined : { do: "wait", kind: "Lock", name: detail };
}

function planVmKeeperLeft(input: PlanInput, held: Held): Next {
  const { claim, machine } = held;
  const known = planVmKeeperKnown(claim, machine);
  if (known !== undefined) return known;
  const entries = (claim.volumes ?? []).map((entry) => arrived(entry, machine));
  if (!jsonEqual(entries, claim.volumes ?? [])) {
    return { do: "recordKeeper", change: { volumes: entries } };
  }
  const own = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const mayGo = (id: string): boolean => {
    return entries.some((entry) => entry.id === id && entry.onDelete === "Delete");
  };
  const isEmpty = own.every(mayGo) && !entries.some(({ onDelete }) => onDelete === "Retain");
  const at = basisOf(machine);
  if (isEmpty) {
    const operation = { kind: "destroy", claim, at, volumes: own } as const;
    const intent = `Destroy the keeper ${claim.externalId}, which holds nothing any more.`;
    return stepOrWait(input, { name: "DestroyKeeper", operation, intent }, machine.lock);
  }
  const operation = { kind: "release", claim, at } as const;
  const intent = `Let the keeper ${claim.externalId} go, with the disks that it keeps.`;
  return stepOrWait(input, { name: "ReleaseKeeper", operation, intent }, machine.lock);
}

/** What came with its machine gone since, so that nobody noted it. */
function arrived(entry: ClaimVolume, { volumes, disks }: Machine): ClaimVolume {
  if (entry.onDelete !== "Retain" || volumes.some(({ id }) => id === entry.id)) return entry;
  const filled = disks.find(({ name }) => name === entry.disk);
  return filled === undefined ? entry : settledEntry(entry, filled);
}

/** A volume gets another name with another owner. */
export function settledEntry(entry: ClaimVolume, { volume, sizeBytes }: SeenDisk): ClaimVolume {
  return { ...entry, id: volume, state: "Attached", size: String(sizeBytes) };
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
      return orUnsettled(input, claim.everStood ? gone : makeKeeper(claim, place));
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
  if (!claim.everStood) return planVmKeeperGiven(claim, seen);
  return { do: "fail", failure: keeperLost(claim, detail) };
}

/** Somebody else has the id; or it is empty, and may be what our own lost request left there. */
function planVmKeeperGiven({ everStood }: ClaimSpec, { reason, detail }: ForeignSeen): Next {
  if (reason === "Husk") return { do: "dropKeeper", how: "Release", why: detail };
  return { do: "dropKeeper", how: everStood ? "Release" : "Retire" };
}

/** An empty reservation whose work is dead blocks its id only: the Claim goes on saying so. */
function leftHusk(claim: ClaimSpec, lock: Lock): Next {
  const { message, remedy = "" } = deadLock(claim, lock);
  return { do: "dropKeeper", how: "Release", why: `${message} ${remedy}`.trim() };
}

function planVmKeeperKnown(claim: ClaimSpec, machine: Machine): Next | undefined {
  const { node } = machine;
  if (claim.state === "Reserved") {
    return { do: "recordKeeper", change: { state: "Bound", everStood: true, node } };
  }
  return claim.node === node ? undefined : { do: "recordKeeper", change: { node } };
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
  return { do: "step", step: { name: "MakeKeeper", operation, intent } };
}

/** It never runs, so it takes none of this. */
const keeperMemoryBytes = 128 * 2 ** 20;

function adoptKeeper(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const disks = Object.entries(machine.mark?.disks ?? {}).map(([name, slot]) => ({ name, slot }));
  const at = basisOf(machine);
  const operation = { kind: "stamp", claim, at, disks, networks: [], adopt: true } as const;
  const intent = `Take the keeper ${claim.externalId} up again: write Berth's mark into it.`;
  return stepOrWait(input, { name: "AdoptKeeper", operation, intent }, machine.lock);
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
