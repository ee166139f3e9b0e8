import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { humanBytes } from "./human-bytes.ts";

describe("a size for people", () => {
  for (const { bytes, says } of [
    { bytes: 0, says: "0 B" },
    { bytes: 1023, says: "1023 B" },
    { bytes: 1536, says: "1.5 KiB" },
    { bytes: 858_993_459_200, says: "800 GiB" },
    { bytes: 989_560_464_998_400, says: "900 TiB" },
    { bytes: 2048 * 1024 ** 5, says: "2048 PiB" },
  ]) {
    test(`${bytes} is ${says}`, () => assert.equal(humanBytes(bytes), says));
  }

  test("two that differ by little do not read alike", () => {
    const [left, wanted] = [100 * 1024 ** 3, 100 * 1024 ** 3 + 1];
    assert.equal(humanBytes(left, Math.floor), "100 GiB");
    assert.equal(humanBytes(wanted, Math.ceil), "100.1 GiB");
  });
});
