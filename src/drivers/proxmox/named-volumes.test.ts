import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AddDisk, Operation } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { claim, data, open } from "./fixture.ts";
import { Glance } from "./glance.ts";
import { allocateNamed, nameBlankDisk, namedVolume } from "./named-volumes.ts";
import { PveApi } from "./wire/api.ts";
import type { PveRequest } from "./wire/wire.ts";

const id = "8f14e45f-ceea-467f-a1b2-8f14e45fceea";
const vm = claim.externalId;
const name = `vm-${vm}-berth-8f14e45fceea`;

/** A driver's context on a server with one storage, and the requests that it got. */
function contextOf(settings: object = {}): { context: DriverContext; requests: PveRequest[] } {
  const requests: PveRequest[] = [];
  const api = new PveApi((request) => {
    requests.push(request);
    return Promise.resolve(data([{ storage: "store", ...settings }]));
  });
  // cast: as much of a context as a name needs.
  return { context: { api, glance: new Glance() } as unknown as DriverContext, requests };
}

type Format = "raw" | "qcow2" | "vmdk";

function adding(format?: Format): AddDisk {
  const form = format === undefined ? {} : { format };
  const disk = { name: "data", storage: "store", fill: { from: "blank" }, sizeBytes: 1024 ** 3 };
  // cast: as much of an operation as a name needs.
  const at = { node: "pve1" };
  return { kind: "addDisk", claim, at, disk: { ...disk, ...form } } as unknown as AddDisk;
}

async function nameOn(
  type: string,
  settings: object = {},
  operation: Operation = adding(),
): Promise<string | undefined> {
  const { context } = contextOf(settings);
  const named = await nameBlankDisk(context, operation, { id, type });
  assert(named.ok);
  return named.value;
}

describe("the name of a blank disk's volume", () => {
  it("has the last part of the operation's id, on devices without an extension", async () => {
    for (const type of ["zfspool", "zfs", "rbd", "lvmthin", "lvm"]) {
      assert.equal(await nameOn(type), `store:${name}`, type);
    }
  });

  it("has the extension of its format on files: the asked one, else the storage's", async () => {
    for (const type of ["dir", "nfs", "cifs", "glusterfs", "btrfs"]) {
      assert.equal(await nameOn(type), `store:${vm}/${name}.raw`, type);
    }
    assert.equal(await nameOn("dir", { format: "qcow2" }), `store:${vm}/${name}.qcow2`);
    assert.equal(await nameOn("nfs", {}, adding("vmdk")), `store:${vm}/${name}.vmdk`);
  });

  it("says qcow2 on LVM where volumes are chained, as 9 wants it", async () => {
    const settings = { "snapshot-as-volume-chain": 1 };
    assert.equal(await nameOn("lvm", settings), `store:${name}.qcow2`);
    assert.equal(await nameOn("lvm", settings, adding("raw")), `store:${name}`);
  });

  it("is left to the server where files are written whole: the request would be cut off", async () => {
    for (const preallocation of ["full", "falloc"]) {
      assert.equal(await nameOn("dir", { preallocation }), undefined);
    }
    assert.notEqual(await nameOn("dir", { preallocation: "metadata" }), undefined);
  });

  it("is left to the server on storages of unknown types, and on those that it does not show", async () => {
    assert.equal(await nameOn("iscsi"), undefined);
    assert.equal(await nameOn("drbd"), undefined);
    assert.equal(await nameOn("dir", { storage: "other" }), undefined);
  });

  it("is for blank disks only", async () => {
    const fill = { from: "volume", volume: "local:import/debian.qcow2" };
    const { disk, ...rest } = adding();
    const imported = { ...rest, disk: { ...disk, fill } } as unknown as Operation;
    assert.equal(await nameOn("zfspool", {}, imported), undefined);
  });

  it("costs one call for all disks of the same seconds, and none on ZFS", async () => {
    const { context, requests } = contextOf();
    for (const type of ["zfspool", "dir", "nfs"]) {
      await nameBlankDisk(context, adding(), { id, type });
    }
    assert.deepEqual(
      requests.map(({ path }) => path),
      ["/storage"],
    );
  });
});

describe("the volume that a blank disk gets", () => {
  const volume = `store:${name}`;
  const allocation = {
    operation: id,
    node: "pve1",
    storage: "store",
    volume,
    since: "2026-01-02T03:30:00Z",
    listed: [],
    complete: true,
  };
  const after = (more: object): AddDisk => {
    return { ...adding(), claim: { ...claim, allocation: { ...allocation, ...more } } };
  };

  it("is the one whose name was recorded for it", () => {
    assert.equal(namedVolume(after({})), volume);
  });

  it("is never that of an operation before, or one on another storage", () => {
    assert.equal(namedVolume(after({ settledAt: allocation.since })), undefined);
    assert.equal(namedVolume(after({ storage: "other" })), undefined);
  });
});

describe("the request for a volume by name", () => {
  const params = async (volume: string, format?: Format): Promise<PveRequest["params"]> => {
    const { context, requests } = contextOf();
    await allocateNamed(context, adding(format), { volume, fence: open });
    assert.equal(requests[0]?.path, "/nodes/pve1/storage/store/content");
    return requests[0].params;
  };

  it("has the name, the owner, the size in KiB and the format", async () => {
    const said = { vmid: vm, size: "1048576" };
    const zfs = { ...said, filename: name, format: "raw" };
    assert.deepEqual(await params(`store:${name}`), zfs);
    const file = { ...said, filename: `${name}.qcow2`, format: "qcow2" };
    assert.deepEqual(await params(`store:${vm}/${name}.qcow2`), file);
  });

  it("leaves vmdk to the name: 7.4 does not take it as a parameter", async () => {
    const said = { vmid: vm, size: "1048576", filename: `${name}.vmdk` };
    assert.deepEqual(await params(`store:${vm}/${name}.vmdk`, "vmdk"), said);
  });
});
