import type { ReadOf } from "../schema/index.ts";
import type { claimSpec } from "./spec.ts";

type ClaimSpec = ReadOf<typeof claimSpec>;

/** Fields that only 0.1 wrote. A Claim that has one of them was not rewritten yet. */
const oldFields = [
  "everStood",
  "comingDisks",
  "madeFrom",
  "keeper",
  "preflightVolumes",
  "preflightNode",
] as const satisfies readonly (keyof ClaimSpec)[];

const roles = { VM: "VM", DiskHolder: "DiskHolder", Machine: "VM", Keeper: "DiskHolder" } as const;

/** How 0.1 noted among the volumes that a storage was not listed. */
const unlistedNote = /^(.+):unlisted$/;

/** Whether a Claim is as 0.1 wrote it, in whole or in part. */
export function isOldClaim(spec: ClaimSpec): boolean {
  return roles[spec.role] !== spec.role || oldFields.some((field) => spec[field] !== undefined);
}

/**
 * A Claim in today's form, whoever wrote it. Everything that reads Claims of a server reads them
 * through this, and the first thing that a term does is to write each of them back (decision 15).
 *
 * The schema gives an old Claim the default `everExisted: false` beside its `everStood: true`, so
 * either of the two is enough. Of the other pairs an old Claim has the old one only.
 */
export function currentClaim(spec: ClaimSpec): ClaimSpec {
  if (!isOldClaim(spec)) return spec;
  const { everStood, comingDisks, madeFrom, keeper, preflightVolumes, preflightNode, ...rest } =
    spec;
  const renamed = {
    expectedDisks: rest.expectedDisks ?? comingDisks,
    createdFrom: rest.createdFrom ?? madeFrom,
    diskHolder: rest.diskHolder ?? keeper,
    volumes: provenVolumes(rest),
    otherVolumes: volumesOf(rest, preflightVolumes),
    driver: rest.driver ?? driverOf(preflightVolumes, preflightNode),
  };
  const everExisted = rest.everExisted || everStood === true;
  return { ...rest, role: roles[rest.role], everExisted, ...present(renamed) };
}

/**
 * 0.1 wrote no proofs, and recorded what it saw in the places of its own disks. Without a proof
 * nothing is destroyed any more, so what was recorded then counts as proven, this once.
 */
function provenVolumes({ volumes, state }: ClaimSpec): ClaimSpec["volumes"] {
  if (state === "Reserved") return volumes;
  return volumes?.map((volume) => ({ ...volume, proof: volume.proof ?? "Recorded" }));
}

/** Without what nobody has said. */
function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const said = Object.entries(fields).filter(([, value]) => value !== undefined);
  // cast: the same fields, without those that are undefined.
  return Object.fromEntries(said) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** They were seen before the id was reserved; none of them was believed to be ours. */
function volumesOf(
  { otherVolumes, reservedAt }: ClaimSpec,
  before: readonly string[] | undefined,
): ClaimSpec["otherVolumes"] {
  const known = new Set(otherVolumes?.map(({ id }) => id));
  const added = new Set(before?.filter((id) => !unlistedNote.test(id) && !known.has(id)));
  if (added.size === 0) return otherVolumes;
  const seen = reservedAt === undefined ? {} : { seenAt: reservedAt };
  return [...(otherVolumes ?? []), ...[...added].map((id) => ({ id, ...seen }))];
}

/** The only driver that 0.1 had was that of Proxmox VE, whose form this is. */
function driverOf(
  before: readonly string[] = [],
  listedOn: string | undefined,
): ClaimSpec["driver"] {
  const unlisted = before.flatMap((id) => unlistedNote.exec(id)?.[1] ?? []);
  // What was taken over was never listed: then there is nothing to know.
  if (listedOn === undefined && unlisted.length === 0) return undefined;
  return { version: 1, data: JSON.stringify({ listedOn: listedOn ?? "", unlisted }) };
}
