import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KnownFile, writeMark } from "../../../hypervisor/index.ts";
import { claim, data, driverOn, open, ScriptedServer, upid } from "../fixture.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const volume = "local:import/debian.qcow2";
const config = {
  digest: "d1",
  description: writeMark("", markFor(claim, { disks: { root: "scsi0" }, networks: {} })),
  smbios1: `uuid=${claim.identity}`,
};

async function filledFrom(knownFile: KnownFile, rows: readonly object[]): Promise<string> {
  const server = new ScriptedServer({
    [`GET ${at}/config`]: data(config),
    "GET /nodes/pve1/storage/local/content": data(rows),
    [`POST ${at}/config`]: data(upid("qmconfig", id)),
  });
  const fill = { from: "volume", volume, knownFile } as const;
  const disk = { name: "root", storage: "local-zfs", fill };
  const place = { claim, at: { node: "pve1", version: "d1" } };
  const operation = { kind: "addDisk", ...place, disk, bootOrder: ["root"] } as const;
  const begun = await driverOn(server).begin(operation, open);
  assert.equal(server.writes.length, begun.outcome === "task" ? 1 : 0);
  return begun.outcome === "refused" ? begun.failure.category : begun.outcome;
}

describe("a disk that is filled from a verified file", () => {
  const row = { volid: volume, content: "import", size: 5, ctime: 1_000 };

  it("is copied from the file that was verified", async () => {
    assert.equal(await filledFrom({ size: "5" }, [row]), "task");
    assert.equal(await filledFrom({ size: "5", createdAt: "1970-01-01T00:16:40Z" }, [row]), "task");
  });

  it("is not copied from a file that somebody put there instead, nor from none", async () => {
    assert.equal(await filledFrom({ size: "6" }, [row]), "ImageNotFound");
    const older = { size: "5", createdAt: "1970-01-01T00:16:39Z" };
    assert.equal(await filledFrom(older, [row]), "ImageNotFound");
    assert.equal(await filledFrom({ size: "5" }, []), "ImageNotFound");
  });
});
