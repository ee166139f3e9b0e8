import assert from "node:assert/strict";
import { test } from "node:test";
import { parseVolumeName, pathOfVolume } from "./names.ts";

const dir = { storage: "local", type: "dir", path: "/var/lib/vz", content: "images" };
const zfs = { storage: "z", type: "zfspool", pool: "rpool/data", content: "images" };
const thin = { storage: "t", type: "lvmthin", vgname: "pve", thinpool: "data", content: "images" };
const rbd = { storage: "r", type: "rbd", pool: "ceph", content: "images" };

test("a linked clone names its base, where the storage keeps one", () => {
  const linked = parseVolumeName(dir, "1/base-1-disk-0.qcow2/2/vm-2-disk-0.qcow2");
  assert.deepEqual([linked.vmid, linked.base], [2, "1/base-1-disk-0.qcow2"]);
  assert.equal(parseVolumeName(zfs, "base-1-disk-0/vm-2-disk-0").base, "base-1-disk-0");
  assert.throws(() => parseVolumeName(thin, "base-1-disk-0/vm-2-disk-0"), /lvm volume name/);
});

test("what is no name of the storage is refused in its words", () => {
  assert.throws(() => parseVolumeName(dir, "abc"), {
    message: "unable to parse directory volume name 'abc'",
  });
  assert.throws(() => parseVolumeName(zfs, "1/vm-1-disk-0.raw"), /zfs volume name/);
  assert.throws(() => parseVolumeName(rbd, "x"), /rbd volume name/);
});

test("every kind of volume has its place", () => {
  const places: [string, string][] = [
    ["100/vm-100-disk-0.raw", "/var/lib/vz/images/100/vm-100-disk-0.raw"],
    ["iso/a.iso", "/var/lib/vz/template/iso/a.iso"],
    ["import/a.qcow2", "/var/lib/vz/import/a.qcow2"],
    ["snippets/a.yaml", "/var/lib/vz/snippets/a.yaml"],
  ];
  for (const [name, path] of places) assert.equal(pathOfVolume(dir, name), path);
  assert.equal(pathOfVolume(zfs, "vm-1-disk-0"), "/dev/zvol/rpool/data/vm-1-disk-0");
  assert.equal(pathOfVolume(thin, "vm-1-disk-0"), "/dev/pve/vm-1-disk-0");
});
