import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { writeMark } from "../../../hypervisor/index.ts";
import { proxmoxDriver } from "../driver.ts";
import {
  claim,
  data,
  driverOn,
  error,
  open,
  scriptClock,
  ScriptedServer,
  tokenId,
  upid,
} from "../fixture.ts";
import type { PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const here = { claim, at: { node: "pve1", version: "d1" } } as const;
const drive = `zfs:vm-${id}-disk-0,size=3G`;
const config = {
  digest: "d1",
  description: writeMark("", markFor(claim, { disks: { root: "scsi0" }, networks: {} })),
  smbios1: `uuid=${claim.identity}`,
};
const died = [{ upid: upid("qmstart", id), endtime: 1, status: "unexpected status" }];
const runs = data({ status: "running", qmpstatus: "running" });

describe("a change that was written down and cut short before it was applied", () => {
  it("of a disk: it is applied before it grows, for nothing else knows the drive", async () => {
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data(config),
      [`GET ${at}/pending`]: data([{ key: "scsi0", pending: drive }]),
      [`PUT ${at}/config`]: data(null),
    });
    const sizeBytes = 9 * 1024 ** 3;
    const operation = { kind: "grow", ...here, disk: "root", sizeBytes } as const;
    const begun = await driverOn(server).begin(operation, open);
    assert.deepEqual(begun, { outcome: "progressed" });
    assert.deepEqual(server.writes[0]?.params, { scsi0: drive, digest: "d1" });
  });

  it("of a disk: it is applied before it is handed over", async () => {
    const keeper = { ...claim, externalId: "777" };
    const disks = { data: "scsi0" };
    const kept = {
      ...config,
      description: writeMark("", markFor(keeper, { disks, networks: {} })),
    };
    const volume = `zfs:vm-${id}-disk-0`;
    const listed = [{ volid: volume, vmid: Number(id), content: "images", size: 1 }];
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data(config),
      [`GET ${at}/pending`]: data([{ key: "scsi0", pending: drive }]),
      "GET /nodes/pve1/qemu/777/config": data(kept),
      "GET /nodes/pve1/storage/zfs/content": data(listed),
      [`PUT ${at}/config`]: data(null),
    });
    const to = { claim: keeper, at: here.at, disk: "data" };
    const operation = { kind: "handOver", ...here, volume, to } as const;
    const begun = await driverOn(server).begin(operation, open);
    assert.deepEqual(begun, { outcome: "progressed" });
    assert.deepEqual(server.writes[0]?.params, { scsi0: drive, digest: "d1" });
  });

  it("of a lock: it still locks", async () => {
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data(config),
      [`GET ${at}/pending`]: data([{ key: "lock", value: "backup", delete: 1 }]),
      "GET /nodes/pve1/tasks": data([]),
    });
    const seen = await driverOn(server).observe(claim, { withoutPower: true });
    assert(seen.at === "ours");
    assert.equal(seen.machine.lock?.detail, "backup");
  });
});

describe("the word suspended", () => {
  const read = async (more: object, status: PveReply) => {
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data({ ...config, lock: "suspended", ...more }),
      [`GET ${at}/status/current`]: status,
      "GET /nodes/pve1/tasks": data(died),
    });
    const seen = await driverOn(server).observe(claim);
    assert(seen.at === "ours");
    return [seen.machine.power, seen.machine.lock?.state];
  };

  it("locks a machine that runs and has no saved memory: its resume died", async () => {
    assert.deepEqual(await read({}, runs), ["Running", "Dead"]);
    const vmstate = `zfs:vm-${id}-state-suspend-2026-01-02`;
    assert.deepEqual(await read({ vmstate }, runs), ["Running", undefined]);
    const sleeps = data({ status: "stopped", lock: "suspended" });
    assert.deepEqual(await read({}, sleeps), ["Suspended", undefined]);
  });
});

describe("root's login", () => {
  const unlocked = async (login: PveReply, lock: string) => {
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data({ ...config, lock }),
      [`GET ${at}/status/current`]: runs,
      "GET /nodes/pve1/tasks": data(died),
      "POST /access/ticket": login,
      [`PUT ${at}/config`]: data(null),
    });
    const random = { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "" };
    const unlock = { username: "root@pam", password: "secret" };
    const driver = proxmoxDriver({
      send: server.send,
      tokenId,
      clock: scriptClock,
      random,
      unlock,
    });
    const begun = await driver.begin({ kind: "unlock", ...here, lock }, open);
    return begun.outcome === "refused" ? begun.failure.category : begun.outcome;
  };

  it("is refused only by a refusal: any other error is tried again", async () => {
    assert.equal(await unlocked(error(401, "authentication failure"), "suspended"), "LockError");
    assert.equal(await unlocked(error(500, "it did not please"), "suspended"), "CreationFailed");
  });

  it("clears the word suspended too, where it locks", async () => {
    assert.equal(await unlocked(data({ ticket: "t" }), "suspended"), "done");
  });
});
