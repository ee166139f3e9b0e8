import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Random } from "../kernel/random.ts";
import { createCipher } from "./cipher.ts";
import { describeStore } from "./conformance.ts";
import type { Journal, JournalRecord } from "./journal.ts";
import { createMemoryDisk } from "./memory-journal.ts";
import { sealJournal } from "./sealed-journal.ts";

const sealed = (bucket: string): boolean => bucket === "secrets" || bucket === "things";

describeStore("a sealed journal", async () => {
  const disk = createMemoryDisk();
  return {
    open: async () => sealJournal(disk.open(), { cipher: cipherOf(1), sealed }),
    crash: async () => disk.crash(),
    setFault: async (fault) => disk.setFault(fault),
    loseAnswer: async () => disk.setFault("lost"),
    corrupt: async (revision) => disk.corrupt(revision),
    recordCount: async () => disk.recordCount(),
    remove: async () => {},
  };
});

describe("a cipher", () => {
  const plain = new TextEncoder().encode("hunter2");

  it("opens what it sealed, in the same place", () => {
    const cipher = cipherOf(1);
    assert.deepEqual(cipher.open(cipher.seal(plain, "here"), "here"), plain);
  });

  it("opens also nothing at all", () => {
    const cipher = cipherOf(1);
    assert.deepEqual(cipher.open(cipher.seal(new Uint8Array(), "x"), "x"), new Uint8Array());
  });

  it("never gives the same bytes twice", () => {
    const cipher = cipherOf(1);
    assert.notDeepEqual(cipher.seal(plain, "here"), cipher.seal(plain, "here"));
  });

  it("does not open in another place, with another key, or when a bit has changed", () => {
    const bytes = cipherOf(1).seal(plain, "here");
    assert.equal(cipherOf(1).open(bytes, "there"), undefined);
    assert.equal(cipherOf(2).open(bytes, "here"), undefined);
    for (const [i, byte] of bytes.entries()) {
      assert.equal(cipherOf(1).open(bytes.with(i, byte ^ 1), "here"), undefined, `byte ${i}`);
    }
    assert.equal(cipherOf(1).open(bytes.subarray(0, 20), "here"), undefined);
  });

  it("is not made of a key of the wrong length", () => {
    assert.throws(() => createCipher(new Uint8Array(16), countingRandom()), /32 bytes/);
  });
});

describe("a sealed journal", () => {
  it("lets nothing of a sealed value reach the disk, and leaves other buckets alone", async () => {
    const disk = createMemoryDisk();
    const journal = sealJournal(disk.open(), { cipher: cipherOf(1), sealed });
    await journal.append([recordOf("secrets", 1), recordOf("vms", 2)]);
    const [secret, vm] = await recordsOf(disk.open());
    assert.ok(secret && vm);
    assert.ok(!Buffer.from(secret.value).includes("hunter2"));
    assert.deepEqual(vm, recordOf("vms", 2));
  });

  it("refuses a value that was swapped for another sealed one", async () => {
    const [first, second] = await sealedPair();
    const swapped = { ...first, value: second.value };
    await assert.rejects(loadSealed([swapped]), { code: "Unreadable", message: /secrets a/ });
  });

  it("refuses a value that was never sealed", async () => {
    await assert.rejects(loadSealed([recordOf("secrets", 1)]), { code: "Unreadable" });
  });
});

async function sealedPair(): Promise<[JournalRecord, JournalRecord]> {
  const disk = createMemoryDisk();
  const journal = sealJournal(disk.open(), { cipher: cipherOf(1), sealed });
  await journal.append([recordOf("secrets", 1), recordOf("secrets", 2)]);
  const [first, second] = await recordsOf(disk.open());
  assert.ok(first && second);
  return [first, second];
}

async function loadSealed(records: readonly JournalRecord[]): Promise<JournalRecord[]> {
  const disk = createMemoryDisk();
  await disk.open().append(records);
  return recordsOf(sealJournal(disk.open(), { cipher: cipherOf(1), sealed }));
}

async function recordsOf(journal: Journal): Promise<JournalRecord[]> {
  return [...(await journal.load()).records];
}

function recordOf(bucket: string, revision: number): JournalRecord {
  const value = new TextEncoder().encode("hunter2");
  return { bucket, id: "a", revision, type: "put", value };
}

function cipherOf(seed: number): ReturnType<typeof createCipher> {
  return createCipher(new Uint8Array(32).fill(seed), countingRandom());
}

function countingRandom(): Random {
  let count = 0;
  return {
    number: () => 0,
    bytes: (length) => new Uint8Array(length).fill(++count),
    uuid: () => "",
  };
}
