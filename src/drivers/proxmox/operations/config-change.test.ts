import assert from "node:assert/strict";
import { test } from "node:test";
import { effective } from "./config-change.ts";

const eject = { set: { ide2: "none,media=cdrom" }, remove: [] };
const drive = { ide2: "local:iso/berth-seed-1.iso,media=cdrom" };

test("the order to boot in is said with a drive that is written, or the server changes it", () => {
  const values = { boot: "order=scsi0;ide2", scsi0: "local-zfs:vm-1-disk-0", ...drive };
  assert.equal(effective(eject, values).set["boot"], "order=scsi0;ide2");
});

test("a disk that somebody took away is not named in the order: the change would be refused", () => {
  const values = { boot: "order=scsi0;ide2", unused0: "local-zfs:vm-1-disk-0", ...drive };
  assert.equal(effective(eject, values).set["boot"], "order=ide2");
  const alone = { boot: "order=scsi0", unused0: "local-zfs:vm-1-disk-0", ...drive };
  assert.equal(effective(eject, alone).set["boot"], undefined);
});

test("an order in the words of old releases stays as it is", () => {
  const values = { boot: "cdn", ...drive };
  assert.equal(effective(eject, values).set["boot"], "cdn");
});
