import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Seen, writeMark } from "../../hypervisor/index.ts";
import { claim, data, driverOn, ScriptedServer, upid } from "./fixture.ts";
import { markFor } from "./operations/standing.ts";
import { pathPart } from "./wire/wire.ts";

const id = claim.externalId;
const task = { upid: upid("qmclone", "9000"), endtime: 1_800_000_000, status: "OK" };
const log = `GET /nodes/pve1/tasks/${pathPart(task.upid)}/log`;

async function observed(description: string): Promise<Seen> {
  const server = new ScriptedServer({
    [`GET /nodes/pve1/qemu/${id}/config`]: data({
      digest: "d1",
      description,
      smbios1: "uuid=00000000-0000-4000-8000-00000000c09e",
    }),
    "GET /nodes/pve1/tasks": data([task]),
    [log]: data([{ n: 1, t: `creating a clone of VM 9000 with ID ${id}` }]),
  });
  return driverOn(server).observe(claim, { clonedFrom: "9000", withoutPower: true });
}

describe("a clone under our id", () => {
  it("is ours to mark where our own task made it with our marker", async () => {
    const seen = await observed(writeMark("", markFor(claim, { disks: {}, networks: {} })));
    assert(seen.at === "foreign");
    assert.equal(seen.reason, "Unstamped");
  });

  it("is not taken where it bears no marker of ours: somebody recycled the id", async () => {
    const seen = await observed("mine");
    assert(seen.at === "foreign");
    assert.equal(seen.reason, "Stranger");
  });
});
