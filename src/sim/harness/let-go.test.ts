import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { noteLetGo } from "./let-go.ts";
import type { Origin, Site } from "./site.ts";

const key = "pve1:rpool/data/vm-100-put-1";
const other = "pve1:rpool/data/vm-100-put-2";
const person: Origin = { by: "person", uid: undefined };

function scene(): Site {
  const volumes = [key, other].map((one) => {
    const name = one.replace(/^.*\//, "");
    return { key: one, backing: "pve1:rpool/data", name, vmid: "100", volume: {} };
  });
  return {
    volumes: new Map(volumes.map((volume) => [volume.key, person])),
    letGo: new Set<string>(),
    guestVolumes: () => volumes,
  } as unknown as Site;
}

function claim(state: ClaimSpec["state"]): ClaimSpec {
  const volumes = [{ id: "local-zfs:vm-100-put-1", role: "Disk" }];
  const owner = { uid: "u2" };
  return { state, role: "VM", externalId: "100", owner, volumes } as unknown as ClaimSpec;
}

describe("a volume of a machine", () => {
  it("of a person is the person's while the machine is Berth's, and after it was released", () => {
    const site = scene();
    noteLetGo(site, claim("Bound"));
    noteLetGo(site, claim("Released"));
    assert.equal(site.volumes.get(key), person);
    assert.deepEqual([...site.letGo], [key, other]);
  });

  it("of a person is Berth's when the machine is adopted with it; one that the Claim does not name is not", () => {
    const site = scene();
    noteLetGo(site, claim("Released"));
    noteLetGo(site, claim("Bound"));
    assert.deepEqual(site.volumes.get(key), { by: "berth", uid: "u2" });
    assert.equal(site.volumes.get(other), person);
  });

  it("that was to stay is left to people when its Claim is given up", () => {
    const site = scene();
    const before = claim("Bound");
    const stays = { ...before, volumes: [{ ...before.volumes?.[0], onDelete: "Retain" }] };
    noteLetGo(site, claim("Quarantined"), before);
    assert.deepEqual([...site.letGo], []);
    noteLetGo(site, claim("Quarantined"), stays as ClaimSpec);
    assert.deepEqual([...site.letGo], [key]);
  });
});
