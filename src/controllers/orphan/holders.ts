import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Machine, Seen } from "../../hypervisor/index.ts";
import { jsonEqual } from "../../kernel/json.ts";
import { isHeld, type Ledger } from "../claims/index.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/** Claims of a system, and what was observed of those whose object is gone. */
interface Around {
  readonly claims: readonly Claim[];
  readonly isDeclared: (claim: ClaimSpec) => boolean;
  readonly seen: ReadonlyMap<string, Seen>;
}

/** A disk-holder VM that is claimed for an object that is gone, and what it holds. */
export interface LeftHolder {
  readonly claim: Claim;
  readonly volumes: readonly ClaimVolume[];
}

/**
 * A disk-holder VM. It is released before its object goes; so that its object is gone is what it is
 * for where its Claim is Released, and a cut-off where its Claim is still held.
 */
export function isDiskHolder({ role }: ClaimSpec): boolean {
  return role === "DiskHolder";
}

/** Disk-holder VMs that their object would have closed, and that nobody closes any more. Pure. */
export function holdersLeft(around: Around): LeftHolder[] {
  const { claims, isDeclared, seen } = around;
  return claims.flatMap((claim): LeftHolder[] => {
    const { spec } = claim;
    const sight = seen.get(spec.externalId);
    const isLeft = isDiskHolder(spec) && isHeld(spec) && !isDeclared(spec);
    if (!isLeft || sight?.at !== "ours") return [];
    return [{ claim, volumes: volumesWith(around, spec, sight.machine) }];
  });
}

/** Whether anything in it has to stay. */
export function isHolding({ volumes }: Pick<LeftHolder, "volumes">): boolean {
  return volumes.some(({ onDelete }) => onDelete === "Retain");
}

/**
 * What it holds. A disk that was on its way has come, or is still with the VM that it was to come
 * from. Of one that is seen nowhere nobody knows, so it counts; and so does what no entry names.
 */
function volumesWith(
  { seen }: Around,
  { externalId, volumes = [] }: ClaimSpec,
  machine: Machine,
): ClaimVolume[] {
  const others = [...seen].filter(([id]) => id !== externalId).map(([, sight]) => sight);
  const isElsewhere = (id: string): boolean => {
    return others.some((sight) => sight.at === "ours" && isIn(sight.machine, id));
  };
  const known = volumes.flatMap((entry): ClaimVolume[] => {
    if (isIn(machine, entry.id) || entry.onDelete !== "Retain") return [entry];
    const filled = machine.disks.find(({ name }) => name !== undefined && name === entry.disk);
    if (filled === undefined) return isElsewhere(entry.id) ? [] : [entry];
    const { volume: id, sizeBytes } = filled;
    return [{ ...entry, id, state: "Attached", size: String(sizeBytes) }];
  });
  const unnamed = machine.volumes.filter(({ id, isOwn }) => {
    return isOwn && !known.some((entry) => entry.id === id);
  });
  const added = unnamed.map(({ id, role, disk, storage, state }): ClaimVolume => {
    return { id, role, storage, state, onDelete: "Retain", ...(disk && { disk }) };
  });
  return [...known, ...added];
}

function isIn({ volumes }: Machine, id: string): boolean {
  return volumes.some((volume) => volume.id === id);
}

/**
 * Closes one as its object would have: what it holds is written down, and then it is released with
 * that. One that holds nothing stays claimed: it is reported like any VM whose object is gone.
 */
export async function closeHolder(
  ledger: Ledger,
  left: LeftHolder,
  hasOwner: (claim: ClaimSpec) => Promise<boolean>,
): Promise<void> {
  const { hypervisor, externalId } = left.claim.spec;
  const claim = await ledger.read(hypervisor.systemId, externalId);
  // What was concluded from another version is concluded again by the next sweep.
  const isSame = claim?.metadata.resourceVersion === left.claim.metadata.resourceVersion;
  if (claim === undefined || !isSame || (await hasOwner(claim.spec))) return;
  const volumes = [...left.volumes];
  const isKnown = jsonEqual(volumes, claim.spec.volumes ?? []);
  const known = isKnown ? claim : await ledger.record(claim, { volumes });
  if (isHolding(left)) await ledger.release(known, "it holds disks of an object that is gone");
}
