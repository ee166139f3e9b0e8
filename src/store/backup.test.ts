import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { type BackupOptions, createBackup, readBackupFiles } from "./backup.ts";
import { createCipher } from "./cipher.ts";
import { lockFolder } from "./folder-lock.ts";
import { openStore } from "./open-store.ts";
import { restoreBackup, type RestoreOptions } from "./restore.ts";
import { sealJournal } from "./sealed-journal.ts";
import { openSqliteJournal } from "./sqlite-journal.ts";
import type { Store } from "./store.ts";
import { verifyStore } from "./verify.ts";

const clock: Clock = {
  nowMs: () => 1_700_000_000_000,
  monotonicMs: () => 0,
  bootId: "test",
  after: () => () => {},
};
const random: Random = {
  number: () => 0,
  bytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  uuid: () => "",
};
const key = new Uint8Array(32).fill(7);
const cipher = createCipher(key, random);
const sealed = (bucket: string): boolean => bucket === "core/secrets";

let root: string;
let data: string;
let backup: string;
let store: Store;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "berth-backup-"));
  data = join(root, "data");
  backup = join(root, "berth.backup");
  lockFolder(data).release();
  store = await open(data);
  await put("core/secrets", "default/token", "hunter2");
  await put("berth.dev/virtualmachines", "default/web", "old");
  await put("berth.dev/virtualmachines", "default/web", "new");
  await put("berth.dev/virtualmachines", "default/gone", "gone");
  await remove("berth.dev/virtualmachines", "default/gone");
  writeFileSync(join(data, "ca.crt"), "certificate");
  writeFileSync(join(data, "ca.key"), "private");
});

afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true });
});

describe("a backup", () => {
  it("of a running store holds one moment of it and the files beside, but no key", () => {
    const summary = make({});
    assert.deepEqual(summary, { objects: 2, bytes: 39, revision: 5, format: 2, files: ["ca.crt"] });
    const content = new TextEncoder().encode("certificate");
    assert.deepEqual(readBackupFiles(backup), [{ name: "ca.crt", mode: 0o644, content }]);
    assert.equal(statSync(backup).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(root).sort(), ["berth.backup", "data"]);
    assert.ok(!readFileSync(backup).includes("hunter2"));
    assert.ok(!readFileSync(backup).includes("private"));
  });

  it("of a stopped store is the same", async () => {
    await store.close();
    assert.equal(make({}).objects, 2);
  });

  it("holds the keys when asked to", () => {
    assert.deepEqual(make({ withKey: true }).files, ["ca.crt", "ca.key"]);
  });

  it("is not written over another file unless forced", () => {
    writeFileSync(backup, "precious");
    assert.throws(() => make({}), { code: "Exists" });
    assert.equal(readFileSync(backup, "utf8"), "precious");
    make({ force: true });
    assert.equal(readBackupFiles(backup).length, 1);
  });

  it("leaves nothing behind when it fails", () => {
    const missing = { name: "x", path: join(data, "x"), mode: 0o600, isKey: false };
    assert.throws(() => make({ files: [missing] }), { code: "ENOENT" });
    assert.throws(() => make({ database: join(data, "nothing.db") }), { code: "Missing" });
    assert.deepEqual(readdirSync(root), ["data"]);
  });
});

describe("a restore", () => {
  it("brings back every object and file into a new folder", async () => {
    make({ withKey: true });
    const folder = join(root, "fresh");
    const summary = restore({ folder });
    assert.deepEqual([summary.objects, summary.unreadable, summary.movedTo], [2, [], undefined]);
    assert.deepEqual(readdirSync(folder).sort(), ["ca.crt", "ca.key", "lock", "store.db"]);
    assert.equal(statSync(join(folder, "ca.key")).mode & 0o777, 0o600);
    assert.equal(statSync(join(folder, "store.db")).mode & 0o777, 0o600);
    const restored = await open(folder);
    assert.equal(read(restored, "core/secrets", "default/token"), "hunter2");
    assert.equal(read(restored, "berth.dev/virtualmachines", "default/web"), "new");
    await restored.close();
  });

  it("goes on with revisions that nobody has seen, and forgets the past", async () => {
    make({});
    await put("berth.dev/virtualmachines", "default/later", "lost with the disk");
    const folder = join(root, "fresh");
    restore({ folder });
    const restored = await open(folder);
    assert.ok(restored.compactedRevision() > store.revision());
    assert.equal(restored.revision(), restored.compactedRevision());
    await restored.close();
  });

  it("without the key names the objects that cannot be read, and leaves out exactly those", async () => {
    make({});
    const folder = join(root, "fresh");
    const summary = restore({ folder, cipher: undefined });
    assert.deepEqual(summary.unreadable, [{ bucket: "core/secrets", id: "default/token" }]);
    assert.equal(summary.objects, 1);
    const restored = await open(folder);
    assert.equal(restored.count("core/secrets"), 0);
    assert.equal(restored.count("berth.dev/virtualmachines"), 1);
    await restored.close();
  });

  it("with another key does the same", () => {
    make({});
    const other = createCipher(new Uint8Array(32), random);
    const summary = restore({ folder: join(root, "fresh"), cipher: other });
    assert.deepEqual(summary.unreadable, [{ bucket: "core/secrets", id: "default/token" }]);
  });

  it("refuses a folder that is not empty, and with force moves its content aside", async () => {
    make({});
    await store.close();
    assert.throws(() => restore({ folder: data }), { code: "Exists", message: /not empty/ });
    const { movedTo } = restore({ folder: data, force: true });
    assert.equal(movedTo, join(data, "replaced-2023-11-14T22-13-20Z"));
    assert.deepEqual(readdirSync(movedTo ?? "").sort(), ["ca.crt", "ca.key", "store.db"]);
    assert.deepEqual(verifyStore(join(data, "store.db"), { sealed, cipher }).objects, 2);
  });

  it("refuses a folder that is in use", () => {
    make({});
    const lock = lockFolder(data);
    assert.throws(() => restore({ folder: data, force: true }), { code: "Locked" });
    lock.release();
  });

  it("leaves the folder alone when the backup is damaged", () => {
    make({});
    change(backup, "UPDATE record SET value = x'00' WHERE revision = 3");
    const folder = join(root, "fresh");
    assert.throws(() => restore({ folder }), { code: "Corrupt", message: /default\/web/ });
    assert.deepEqual(readdirSync(folder), ["lock"]);
  });

  it("refuses a backup with a damaged file, a foreign name, or of a newer build", () => {
    const folder = join(root, "fresh");
    make({});
    change(backup, "UPDATE backup_file SET content = x'00'");
    assert.throws(() => restore({ folder }), { code: "Corrupt", message: /ca\.crt/ });
    make({ force: true });
    for (const name of ["../ca.crt", "/etc/passwd", "a/../../b", "lock", ""]) {
      change(backup, `UPDATE backup_file SET name = '${name}'`);
      assert.throws(() => restore({ folder }), { code: "Corrupt" }, name);
    }
    change(backup, "PRAGMA user_version = 99");
    assert.throws(() => restore({ folder }), { code: "TooNew" });
  });

  it("refuses what is not a backup", () => {
    const folder = join(root, "fresh");
    assert.throws(() => restore({ folder, backup: join(data, "store.db") }), /is not a backup/);
    assert.throws(() => restore({ folder, backup: join(data, "ca.crt") }), { code: "Corrupt" });
    assert.throws(() => restore({ folder, backup: join(data, "nothing") }), { code: "Missing" });
  });
});

it("verifying a running store counts its objects and names what the key does not open", () => {
  const path = join(data, "store.db");
  assert.deepEqual(verifyStore(path, { sealed, cipher }).unreadable, []);
  const summary = verifyStore(path, { sealed, cipher: undefined });
  assert.deepEqual(summary.unreadable, [{ bucket: "core/secrets", id: "default/token" }]);
  assert.deepEqual([summary.objects, summary.revision], [2, 5]);
});

function make(options: Partial<BackupOptions>): ReturnType<typeof createBackup> {
  return createBackup({
    database: join(data, "store.db"),
    target: backup,
    files: [
      { name: "ca.crt", path: join(data, "ca.crt"), mode: 0o644, isKey: false },
      { name: "ca.key", path: join(data, "ca.key"), mode: 0o600, isKey: true },
    ],
    withKey: false,
    force: false,
    clock,
    ...options,
  });
}

function restore(
  options: Partial<RestoreOptions> & Pick<RestoreOptions, "folder">,
): ReturnType<typeof restoreBackup> {
  return restoreBackup({
    backup,
    databaseName: "store.db",
    force: false,
    clock,
    sealed,
    cipher,
    ...options,
  });
}

async function open(folder: string): Promise<Store> {
  const journal = await openSqliteJournal({ path: join(folder, "store.db") });
  return openStore({ journal: sealJournal(journal, { cipher, sealed }), clock });
}

async function put(bucket: string, id: string, text: string): Promise<void> {
  const encode = (): Uint8Array => new TextEncoder().encode(text);
  await store.write({ bucket, id }, () => ({ do: "put", encode }));
}

async function remove(bucket: string, id: string): Promise<void> {
  await store.write({ bucket, id }, () => ({ do: "delete", encode: () => new Uint8Array() }));
}

function read(from: Store, bucket: string, id: string): string | undefined {
  const entry = from.get({ bucket, id });
  return entry && new TextDecoder().decode(entry.value);
}

function change(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}
