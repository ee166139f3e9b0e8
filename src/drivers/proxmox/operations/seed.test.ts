import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seedFileName } from "../../../hypervisor/index.ts";
import { proxmoxDriver } from "../driver.ts";
import {
  claim,
  data,
  error,
  open,
  scriptClock,
  ScriptedServer,
  tokenId,
  upid,
} from "../fixture.ts";

const fileName = seedFileName(claim.identity, "0123456789abcdef0123456789abcdef");
const volume = `nfs:iso/${fileName}`;
const path = `DELETE /nodes/pve1/storage/nfs/content/${encodeURIComponent(volume)}`;
const home = `/nodes/pve2/qemu/${claim.externalId}`;

/** The storage is seen by all nodes, and was looked at from one that the machine is not on. */
const operation = {
  kind: "removeSeed",
  claim,
  node: "pve1",
  storage: "nfs",
  fileName,
  isStray: true,
} as const;

function server(config: object, snapshot: object = {}): ScriptedServer {
  const row = { volid: volume, content: "iso", size: 1 };
  return new ScriptedServer({
    "GET /nodes/pve1/storage/nfs/content": data([row]),
    "GET /cluster/resources": data([
      { type: "qemu", vmid: Number(claim.externalId), node: "pve2" },
    ]),
    [`GET /nodes/pve1/qemu/${claim.externalId}/config`]: error(
      500,
      `Configuration file 'nodes/pve1/qemu-server/${claim.externalId}.conf' does not exist`,
    ),
    [`GET ${home}/config`]: data({ digest: "d1", ...config }),
    [`GET ${home}/pending`]: data([]),
    [`GET ${home}/snapshot`]: data([{ name: "before" }, { name: "current" }]),
    [`GET ${home}/snapshot/before/config`]: data(snapshot),
    [path]: data(upid("imgdel", "nfs")),
  });
}

async function begin(on: ScriptedServer): Promise<string> {
  const random = { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "" };
  const driver = proxmoxDriver({ send: on.send, tokenId, clock: scriptClock, random });
  const begun = await driver.begin(operation, open);
  return begun.outcome === "refused" ? begun.failure.message : begun.outcome;
}

describe("the disc of a first boot that no object sees to", () => {
  const drive = { ide2: `${volume},media=cdrom` };

  it("stays in the drive of its machine, on whatever node that is", async () => {
    const on = server(drive);
    assert.match(await begin(on), new RegExp(`VM ${claim.externalId} still holds ${fileName}`));
    assert.deepEqual(on.writes, []);
  });

  it("stays for a snapshot that would go back to it", async () => {
    const on = server({ ide2: "none,media=cdrom" }, drive);
    assert.match(await begin(on), /still holds/);
    assert.deepEqual(on.writes, []);
  });

  it("goes when nobody refers to it", async () => {
    const on = server({ ide2: "none,media=cdrom" });
    assert.equal(await begin(on), "task");
    assert.equal(on.writes.length, 1);
  });
});
