import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { discImage } from "./disc-image.ts";

const files = [
  { name: "user-data", content: Buffer.from("#cloud-config\n") },
  { name: "meta-data", content: Buffer.from("x".repeat(5000)) },
];

/** The files as the tree of one descriptor shows them. */
function readBack(image: Buffer, descriptor: number, isWide: boolean): Record<string, string> {
  const root = image.readUInt32LE(descriptor * 2048 + 156 + 2);
  const found: Record<string, string> = {};
  for (let at = root * 2048; image.readUInt8(at) > 0; at += image.readUInt8(at)) {
    const length = image.readUInt8(at + 32);
    const name = image.subarray(at + 33, at + 33 + length);
    if (length === 1) continue;
    const sector = image.readUInt32LE(at + 2);
    assert.equal(sector, image.readUInt32BE(at + 6));
    const content = image.subarray(sector * 2048, sector * 2048 + image.readUInt32LE(at + 10));
    const text = isWide ? Buffer.from(name).swap16().toString("utf16le") : name.toString("latin1");
    found[text] = content.toString();
  }
  return found;
}

describe("a disc image", () => {
  const image = Buffer.from(discImage("cidata", files));

  it("has the label and ends where it says", () => {
    assert.equal(image.toString("latin1", 16 * 2048, 16 * 2048 + 6), "\u0001CD001");
    assert.equal(image.toString("latin1", 16 * 2048 + 40, 16 * 2048 + 46), "cidata");
    assert.equal(image.readUInt32LE(16 * 2048 + 80) * 2048, image.length);
    assert.equal(image.toString("latin1", 18 * 2048, 18 * 2048 + 6), "\u00ffCD001");
  });

  it("holds every file under its name, for old readers and for new ones", () => {
    const whole = Object.fromEntries(files.map(({ name, content }) => [name, content.toString()]));
    assert.deepEqual(readBack(image, 17, true), whole);
    assert.deepEqual(Object.keys(readBack(image, 16, false)), ["META-DATA.;1", "USER-DATA.;1"]);
  });

  it("is the same for the same files, in any order", () => {
    assert.deepEqual(Buffer.from(discImage("cidata", files.toReversed())), image);
  });
});
