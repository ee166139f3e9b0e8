import assert from "node:assert/strict";
import type { Claim, ClaimSpec } from "../../src/api/index.ts";
import type { JsonObject } from "../../src/kernel/json.ts";
import { claimsIn, type KeptFolder } from "./kept.ts";

/** What 0.1 wrote in a Claim by names that this release does not write. */
export const oldFields = [
  "everStood",
  "comingDisks",
  "madeFrom",
  "keeper",
  "preflightVolumes",
  "preflightNode",
] as const;

/** What was written to the hypervisor beyond what 0.1 itself wrote, in whatever order. */
export function extraWrites(writes: readonly string[], kept: KeptFolder): string[] {
  const known = new Set(claimsIn(kept).map((spec) => spec["externalId"]));
  // An id that was chosen since then is another one each time.
  const general = (write: string): string => {
    return write.replace(/(?<=qemu\/)\d+/, (id) => (known.has(id) ? id : "NEW"));
  };
  const left = kept.writes.map(general);
  const toVms = writes.filter((write) => !isAllocation(write));
  return toVms.map(general).filter((write) => {
    const index = left.indexOf(write);
    if (index >= 0) left.splice(index, 1);
    return index < 0;
  });
}

/** A blank disk is allocated by name before the request that 0.1 sent for it. It touches no VM. */
function isAllocation(write: string): boolean {
  return /^POST \/nodes\/\w+\/storage\/[\w-]+\/content$/.test(write);
}

/** What was there is all there, one by one; a new one may have come. */
export function assertUpgraded(before: readonly Claim[], after: readonly Claim[]): void {
  for (const { metadata, spec } of before) {
    const now = after.find((claim) => claim.metadata.uid === metadata.uid);
    assert.ok(now, spec.owner.name);
    assertSame(spec, now.spec);
  }
}

/** Every fact of an old Claim by its new name, and no old name. */
export function assertSame(old: ClaimSpec | undefined, now: ClaimSpec): void {
  assert.ok(old);
  assert.equal(now.everExisted, old.everStood);
  assert.deepEqual(now.expectedDisks, old.comingDisks);
  assert.deepEqual(now.createdFrom, old.madeFrom);
  assert.deepEqual(now.diskHolder, old.keeper);
  assert.equal(now.role, old.role === "Keeper" ? "DiskHolder" : "VM");
  const [volumes, notes] = [old.preflightVolumes ?? [], /:unlisted$/];
  assert.deepEqual(
    (now.otherVolumes ?? []).map(({ id, seenAt }) => [id, seenAt]),
    volumes.filter((id) => !notes.test(id)).map((id) => [id, old.reservedAt]),
  );
  const unlisted = volumes.filter((id) => notes.test(id)).map((id) => id.replace(notes, ""));
  const listing = { listedOn: old.preflightNode, unlisted };
  const data: unknown = now.driver && JSON.parse(now.driver.data);
  assert.deepEqual(data, old.preflightNode === undefined ? undefined : listing);
  // What 0.1 recorded was Berth's by its word, and says so now.
  assert.deepEqual(
    now.volumes,
    old.volumes?.map((volume) => ({ ...volume, proof: "Recorded" })),
  );
  for (const field of oldFields) assert.equal(now[field], undefined, field);
  const rest = ({ role: _role, everExisted: _ever, ...spec }: ClaimSpec): JsonObject => {
    const added = [
      "target",
      "expectedDisks",
      "createdFrom",
      "diskHolder",
      "otherVolumes",
      "volumes",
      "driver",
    ];
    const names = new Set<string>([...oldFields, ...added]);
    return Object.fromEntries(Object.entries(spec).filter(([name]) => !names.has(name)));
  };
  assert.deepEqual(rest(now), rest(old));
}
