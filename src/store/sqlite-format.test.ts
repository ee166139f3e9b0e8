import assert from "node:assert/strict";
import {
  closeSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { JournalRecord } from "./journal.ts";
import { compactedRevisionOf, formatOf, openDatabase, recordsOf } from "./sqlite-format.ts";

let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "berth-format-"));
  path = join(root, "store.db");
});

afterEach(() => rmSync(root, { recursive: true }));

describe("the file of a store", () => {
  it("is made for its owner only, durable at every commit", () => {
    const database = openDatabase(path);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(statSync(`${path}-wal`).mode & 0o777, 0o600);
    assert.equal(pragma(database, "journal_mode"), "wal");
    assert.equal(pragma(database, "synchronous"), 2);
    database.close();
  });

  it("of format 1 is upgraded with all that it holds, once", () => {
    makeFormat1();
    for (let i = 0; i < 2; i++) {
      const database = openDatabase(path);
      assert.equal(formatOf(database), 2);
      assert.equal(compactedRevisionOf(database), 3);
      assert.deepEqual([...recordsOf(database, path)], [recordOf(2), recordOf(5)]);
      database.close();
    }
  });

  it("of format 1 stays as it was when its upgrade fails", () => {
    makeFormat1();
    change("UPDATE record SET type = 'neither' WHERE revision = 5");
    assert.throws(() => openDatabase(path));
    const database = new DatabaseSync(path);
    assert.equal(formatOf(database), 1);
    assert.equal(database.prepare("SELECT * FROM record").columns().length, 5);
    database.close();
  });

  it("of a newer build is refused with one sentence, and not touched", () => {
    openDatabase(path).close();
    change("PRAGMA user_version = 3");
    assert.throws(() => openDatabase(path), {
      code: "TooNew",
      message:
        `${path} was written by a newer Berth (format 3, this one knows 2): ` +
        "start that one, or restore a backup from before",
    });
  });

  it("is refused if it is somebody else's", () => {
    change("CREATE TABLE other (x)");
    assert.throws(() => openDatabase(path), {
      code: "Corrupt",
      message: /is not a store of Berth/,
    });
    rmSync(path);
    writeFileSync(path, "x".repeat(5_000));
    assert.throws(() => openDatabase(path), { code: "Corrupt", message: /berth restore/ });
  });

  it("is refused if its pages are damaged", () => {
    const database = openDatabase(path);
    const insert = database.prepare("INSERT INTO record VALUES (?, 'put', 'things', ?, ?, 0)");
    for (let i = 1; i <= 200; i++) insert.run(i, `id-${i}`, new Uint8Array(1_000));
    database.close();
    const file = openSync(path, "r+");
    writeSync(file, new Uint8Array(4_096).fill(0xff), 0, 4_096, 4_096 * 20);
    closeSync(file);
    assert.throws(() => openDatabase(path), { code: "Corrupt" });
  });

  it("is refused if a record is damaged anywhere", () => {
    for (const damage of ["id = 'b'", "bucket = 'x'", "type = 'delete'", "revision = 9"]) {
      makeFormat1();
      openDatabase(path).close();
      change(`UPDATE record SET ${damage} WHERE revision = 5`);
      const database = openDatabase(path);
      assert.throws(() => [...recordsOf(database, path)], { code: "Corrupt" }, damage);
      database.close();
      rmSync(path);
    }
  });
});

/** As the first builds made it. */
function makeFormat1(): void {
  change(`
    CREATE TABLE record (
      revision INTEGER PRIMARY KEY,
      type TEXT NOT NULL,
      bucket TEXT NOT NULL,
      id TEXT NOT NULL,
      value BLOB NOT NULL
    ) STRICT;
    CREATE TABLE mark (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
    INSERT INTO mark VALUES ('compacted', 3);
    INSERT INTO record VALUES (2, 'put', 'things', 'a', x'0102');
    INSERT INTO record VALUES (5, 'put', 'things', 'a', x'0102');
    PRAGMA application_id = 0x42525448;
    PRAGMA user_version = 1;
  `);
}

function recordOf(revision: number): JournalRecord {
  return { revision, type: "put", bucket: "things", id: "a", value: new Uint8Array([1, 2]) };
}

function change(sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

function pragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}
