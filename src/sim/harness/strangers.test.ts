import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { Dice } from "./dice.ts";
import { Site } from "./site.ts";
import { enterUnused, layVolume } from "./strangers.ts";

describe("a person who enters a volume into a VM as unused", () => {
  it("changes a VM that a person made, and Berth is not blamed for it", () => {
    const { site, id } = siteWith("person");
    const volume = layVolume({ site, id }, { pool: "shared", node: "pve1", what: "rescue" });
    enterUnused({ site, id }, volume ?? "");
    assert.equal(site.survey(), true);
    assert.equal(site.guests.get(id)?.by, "person");
  });

  it("does not hide that somebody else changes it afterwards", () => {
    const { site, id } = siteWith("person");
    enterUnused({ site, id }, "shared:120/vm-120-rescue.qcow2");
    site.model.writeGuestFile("pve1", Number(id), "name: other\n");
    site.touched();
    assert.throws(() => site.survey(), /the stranger's machine 120 on east was changed/);
  });

  it("leaves a VM that Berth made Berth's", () => {
    const { site, id } = siteWith("berth");
    enterUnused({ site, id }, "shared:120/vm-120-rescue.qcow2");
    assert.equal(site.survey(), true);
    assert.equal(site.guests.get(id)?.by, "berth");
  });
});

function siteWith(by: "person" | "berth"): { readonly site: Site; readonly id: string } {
  const [clock, id] = [new VirtualClock(), "120"];
  const site = new Site({ name: "east", release: "8.4", clock, dice: Dice.of(1, "site") });
  site.model.writeGuestFile("pve1", Number(id), "name: made\n");
  site.touched();
  if (by === "person") site.personActed(id);
  site.survey();
  return { site, id };
}
