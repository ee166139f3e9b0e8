import assert from "node:assert/strict";
import { it } from "node:test";
import { describeStore } from "./conformance.ts";
import type { Place } from "./testing/bench.ts";
import type { JournalRecord } from "./journal.ts";
import { createMemoryDisk } from "./memory-journal.ts";

describeStore("the in-memory twin", async () => makePlace());

function makePlace(): Place {
  const disk = createMemoryDisk();
  return {
    open: async () => disk.open(),
    crash: async () => disk.crash(),
    setFault: async (fault) => disk.setFault(fault),
    loseAnswer: async () => disk.setFault("hidden"),
    corrupt: async (revision) => disk.corrupt(revision),
    recordCount: async () => disk.recordCount(),
    remove: async () => {},
  };
}

const record: JournalRecord = {
  revision: 1,
  bucket: "things",
  id: "a",
  type: "put",
  value: new Uint8Array([1, 2, 3]),
};

it("a crash loses what was not flushed, and its caller never hears again", async () => {
  const completions: (() => void)[] = [];
  const disk = createMemoryDisk({ flush: (complete) => completions.push(complete) });
  let settled = false;
  const settle = (): void => {
    settled = true;
  };
  disk.open().append([record]).then(settle, settle);
  disk.crash();
  for (const complete of completions) complete();
  await Promise.resolve();
  assert.equal(settled, false);
  assert.equal((await disk.open().load()).revision, 0);
});

for (const { tear, survives } of [
  { tear: 0, survives: false },
  { tear: 0.01, survives: false },
  { tear: 0.5, survives: false },
  { tear: 0.99, survives: false },
  { tear: 1, survives: true },
]) {
  const fate = survives ? "there" : "dropped";
  it(`a write of which ${tear * 100} % arrived is ${fate} whole`, async () => {
    const disk = createMemoryDisk({ flush: () => {} });
    void disk.open().append([record, { ...record, revision: 2, id: "b" }]);
    disk.crash({ tear });
    const { records } = await disk.open().load();
    assert.equal([...records].length, survives ? 2 : 0);
  });
}

it("an abandoned journal cannot write any more", async () => {
  const disk = createMemoryDisk();
  const old = disk.open();
  const next = disk.open();
  void old.append([record]);
  await next.append([{ ...record, revision: 2 }]);
  assert.equal(disk.recordCount(), 1);
});
