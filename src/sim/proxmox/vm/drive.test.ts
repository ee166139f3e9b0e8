import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDrive, printDrive } from "./drive.ts";

test("a drive may say its file by name, in any place, and end with a comma", () => {
  const texts = [
    "local:cloudinit,format=raw,media=cdrom",
    "file=local:cloudinit,media=cdrom,format=raw,",
    "format=raw,,media=cdrom,volume=local:cloudinit",
  ];
  for (const text of texts) {
    assert.equal(printDrive(parseDrive(text)), "local:cloudinit,format=raw,media=cdrom");
  }
});
