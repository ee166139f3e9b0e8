import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** Law 2: every object is gone, so whatever Berth made is gone too, or was let go by name. */
export function demandNothingLeft({ sites, records }: World): void {
  for (const site of sites.values()) {
    for (const [id, { by }] of site.guests) {
      if (by === "person" || isReleased(id, site)) continue;
      throw new Violation(2, `nothing is declared, and the machine ${id} is on ${site.name}`);
    }
    for (const { key, vmid } of site.guestVolumes()) {
      if (site.volumes.get(key)?.by !== "berth" || isReleased(vmid, site)) continue;
      throw new Violation(2, `nothing is declared, and the volume ${key} is on ${site.name}`);
    }
  }
  for (const { metadata, spec } of records.claims.values()) {
    if (spec.state === "Quarantined" || spec.state === "Released") continue;
    throw new Violation(2, `nothing is declared, and the Claim ${metadata.name} is ${spec.state}`);
  }

  function isReleased(id: string, { name }: Site): boolean {
    return records.claimOf(name, id)?.spec.state === "Released";
  }
}
