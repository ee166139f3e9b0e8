import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { differencesOf, shapeOf } from "./shape.ts";

const plain = [
  "#a mark",
  "boot: order=scsi0",
  "cores: 2",
  "name: web",
  "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0",
  "scsi0: local-zfs:vm-100-disk-0,size=4G",
  "scsi1: local-zfs:vm-100-disk-1,size=3G",
  "smbios1: uuid=00000000-0000-4000-8000-000000000001",
  "",
].join("\n");

function differences(change: (text: string) => string, isRunning = true): string[] {
  return differencesOf(shapeOf(change(plain), isRunning), shapeOf(plain, true));
}

describe("two machines that were made from one declaration", () => {
  it("are alike but for their ids, their addresses and the names of their volumes", () => {
    const other = (text: string): string => {
      const named = text.replaceAll("vm-100-disk", "vm-300-disk").replace("a mark", "another");
      return named.replace("00:01", "00:02").replace(/0001$/m, "0002");
    };
    assert.deepEqual(differences(other), []);
  });

  it("are alike wherever their disks are plugged in, and whatever was taken off", () => {
    const replugged = (text: string): string => `${text.replace("scsi1:", "scsi2:")}unused0: x:y\n`;
    assert.deepEqual(differences(replugged), []);
    assert.deepEqual(
      differences((text) => `${text}ide2: none,media=cdrom\n`),
      [],
    );
    assert.deepEqual(
      differences((text) => text.replace("scsi0\n", "scsi0;ide2\n")),
      [],
    );
    assert.deepEqual(
      differences((text) => `${text}[before]\ncores: 1\n`),
      [],
    );
  });

  it("are alike with a disk that people put beside theirs", () => {
    const put = [
      "scsi8: local-zfs:vm-100-put-2,size=4G",
      "scsi9: local-zfs:vm-100-disk-9,size=1G",
      "scsi9: local-zfs:vm-100-disk-1,size=6G",
    ];
    for (const line of put)
      assert.deepEqual(
        differences((text) => `${text}${line}\n`),
        [],
      );
    assert.equal(
      differences((text) => `${text}scsi2: local-zfs:vm-100-disk-2,size=4G\n`).length,
      1,
    );
  });

  it("differ by a field, by a disk, by a card, and by running", () => {
    const cores = differences((text) => text.replace("cores: 2", "cores: 4"));
    assert.deepEqual(cores, ["cores is 4, and 2 there"]);
    const small = differences((text) => text.replace(/^scsi1.*\n/m, ""));
    assert.deepEqual(small, ["scsi is volume,size=4G, and volume,size=3G | volume,size=4G there"]);
    assert.equal(differences((text) => text.replace("vmbr0", "vmbr1")).length, 1);
    assert.equal(differences((text) => `${text}bios: ovmf\n`).length, 1);
    assert.deepEqual(
      differences((text) => text, false),
      ["running is false, and true there"],
    );
  });
});
