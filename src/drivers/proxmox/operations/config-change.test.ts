import assert from "node:assert/strict";
import { test } from "node:test";
import { effective } from "./config-change.ts";

const eject = { set: { ide2: "none,media=cdrom" }, remove: [] };
const drive = { ide2: "local:iso/berth-seed-1.iso,media=cdrom" };
const disk = { scsi0: "local-zfs:vm-1-disk-0" };

test("a drive that is in the order to boot in is written without the order", () => {
  const values = { boot: "order=scsi0;ide2", ...disk, ...drive };
  assert.deepEqual(effective(eject, values).set, eject.set);
  // A disk that somebody took away is not named: the change would be refused.
  const without = { boot: "order=scsi0;ide2", unused0: "local-zfs:vm-1-disk-0", ...drive };
  assert.deepEqual(effective(eject, without).set, eject.set);
});

test("an order that is sent with a drive names the drive, or the server may append it", () => {
  const change = { set: { ...eject.set, boot: "order=scsi0" }, remove: [] };
  const values = { boot: "order=scsi1", ...disk, ...drive };
  assert.equal(effective(change, values).set["boot"], "order=scsi0;ide2");
});

test("an order that takes a drive out is sent by itself, when the drive is as it should be", () => {
  const change = { set: { ...eject.set, boot: "order=scsi0" }, remove: [] };
  const values = { boot: "order=scsi0;ide2", ...disk, ...drive };
  assert.deepEqual(effective(change, values).set, eject.set);
  assert.deepEqual(effective(change, { ...values, ...eject.set }).set, { boot: "order=scsi0" });
});

test("an order in the words of old releases stays as it is", () => {
  const values = { boot: "cdn", ...drive };
  assert.equal(effective(eject, values).set["boot"], "cdn");
});
