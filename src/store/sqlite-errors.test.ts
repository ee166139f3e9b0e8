import assert from "node:assert/strict";
import { test } from "node:test";
import { isCommitRefused, nothingStored } from "./sqlite-errors.ts";

/** Result codes of https://sqlite.org/rescode.html at a COMMIT. */
const cases = [
  { name: "SQLITE_FULL", errcode: 13, refused: true, code: "StorageFull" },
  { name: "SQLITE_BUSY", errcode: 5, refused: true, code: "StorageFailed" },
  { name: "SQLITE_BUSY_SNAPSHOT", errcode: 517, refused: true, code: "StorageFailed" },
  { name: "SQLITE_IOERR_WRITE", errcode: 778, refused: false, code: "StorageFailed" },
  { name: "SQLITE_IOERR_FSYNC", errcode: 1034, refused: false, code: "StorageFailed" },
  { name: "SQLITE_CORRUPT", errcode: 11, refused: false, code: "StorageFailed" },
];

for (const { name, errcode, refused, code } of cases) {
  const outcome = refused ? "has stored nothing" : "has an unknown outcome";
  test(`a commit that fails with ${name} ${outcome}`, () => {
    const error = Object.assign(new Error(name), { errcode });
    assert.equal(isCommitRefused(error), refused);
    assert.equal(nothingStored(error).code, code);
  });
}

test("an error that is not SQLite's has an unknown outcome", () => {
  assert.equal(isCommitRefused(new Error("out of memory")), false);
  assert.equal(isCommitRefused("nonsense"), false);
});
