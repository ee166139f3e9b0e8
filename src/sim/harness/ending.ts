import type { Records } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** Law 2: every object is gone, so whatever Berth made is gone too, or was let go by name. */
export function demandNothingLeft({ sites, records }: World): void {
  for (const site of sites.values()) {
    for (const what of leftOn(site, records)) {
      throw new Violation(2, `nothing is declared, and ${what} is on ${site.name}`);
    }
  }
  for (const { metadata, spec } of records.claims.values()) {
    if (spec.state === "Quarantined" || spec.state === "Released") continue;
    const claim = `the Claim ${metadata.name ?? ""}`;
    throw new Violation(2, `nothing is declared, and ${claim} is ${spec.state}`);
  }
}

function* leftOn(site: Site, records: Records): Generator<string> {
  const isReleased = (id: string): boolean => {
    return records.claimOf(site.name, id)?.spec.state === "Released";
  };
  for (const [id, { by }] of site.guests) {
    if (by === "berth" && !isReleased(id)) yield `the machine ${id}`;
  }
  for (const { key, vmid } of site.guestVolumes()) {
    if (site.volumes.get(key)?.by === "berth" && !isReleased(vmid)) yield `the volume ${key}`;
  }
}
