import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { it } from "node:test";
import { describeStore } from "./conformance.ts";
import type { Place } from "./testing/bench.ts";
import { openSqliteJournal, type SqliteJournal } from "./sqlite-journal.ts";

describeStore("SQLite", async () => new SqlitePlace());

it("keeps its log short while it writes, and leaves one file when it closes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-store-"));
  const path = join(folder, "store.db");
  const journal = await openSqliteJournal({ path, logBytesMax: 50_000 });
  for (let revision = 1; revision <= 200; revision++) {
    const value = new Uint8Array(5_000);
    await journal.append([{ revision, bucket: "things", id: "a", type: "put", value }]);
    const logBytes = statSync(`${path}-wal`).size;
    assert.ok(logBytes < 150_000, `the log has ${logBytes} bytes`);
  }
  await journal.close();
  assert.deepEqual(readdirSync(folder), ["store.db"]);
  rmSync(folder, { recursive: true });
});

class SqlitePlace implements Place {
  readonly #folder = mkdtempSync(join(tmpdir(), "berth-store-"));
  readonly #path = join(this.#folder, "store.db");
  #journal: SqliteJournal | undefined;
  #rival: DatabaseSync | undefined;

  async open(): Promise<SqliteJournal> {
    this.#journal = await openSqliteJournal({ path: this.#path, busyMs: 0 });
    return this.#journal;
  }

  async crash(): Promise<void> {
    await this.#journal?.kill();
  }

  /** Another process that holds the write lock is a disk that refuses. */
  async setFault(fault: "full" | "failing" | undefined): Promise<void> {
    if (fault === "full") return this.#journal?.limitPages(1);
    if (fault === "failing") {
      this.#rival = new DatabaseSync(this.#path);
      this.#rival.exec("BEGIN IMMEDIATE");
      return;
    }
    await this.#journal?.limitPages(1_000_000);
    this.#rival?.close();
  }

  async loseAnswer(): Promise<void> {
    await this.#journal?.kill();
  }

  async corrupt(revision: number): Promise<void> {
    this.#query(`UPDATE record SET value = x'00' WHERE revision = ${revision}`);
  }

  async recordCount(): Promise<number> {
    return Number(this.#query("SELECT count(*) AS n FROM record")?.["n"]);
  }

  async remove(): Promise<void> {
    rmSync(this.#folder, { recursive: true });
  }

  #query(sql: string): Record<string, unknown> | undefined {
    const database = new DatabaseSync(this.#path);
    try {
      return database.prepare(sql).get();
    } finally {
      database.close();
    }
  }
}
