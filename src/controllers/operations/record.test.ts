import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Operation } from "../../hypervisor/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { isSameOperation, keyOf, lastOf, openRecord, takenOver, windowLeftMs } from "./record.ts";

const claim = {
  externalId: "100",
  identity: "i",
  installation: "in",
  owner: { namespace: "a", name: "b" },
};
const grow = {
  kind: "grow",
  claim,
  at: { node: "n1", version: "1" },
  disk: "root",
  sizeBytes: 10,
} as unknown as Operation;
const random = { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "u" };

function changed(change: object): Operation {
  return { ...grow, ...change };
}

function opened(clock: VirtualClock, intent = "Grow the disk."): ReturnType<typeof openRecord> {
  const opening = { step: "Grow", operation: grow, intent, windowMs: 60_000, attempt: 1 };
  return openRecord(opening, { clock, random });
}

describe("the key of an operation", () => {
  it("is the same for another attempt at the same thing", () => {
    const { key } = keyOf(grow);
    assert.equal(keyOf(changed({ at: { node: "n2", version: "7" } })).key, key);
    assert.equal(keyOf(changed({ isRepeated: true })).key, key);
    assert.equal(keyOf(changed({ claim: { ...claim, state: "Bound", volumes: [] } })).key, key);
  });

  it("is another for another thing", () => {
    const { key } = keyOf(grow);
    assert.notEqual(keyOf(changed({ sizeBytes: 11 })).key, key);
    assert.notEqual(keyOf(changed({ claim: { ...claim, externalId: "101" } })).key, key);
    assert.notEqual(keyOf(changed({ kind: "destroyDisk" })).key, key);
  });

  it("does not depend on the words for people, however long they are", () => {
    const clock = new VirtualClock();
    const record = opened(clock, "x".repeat(3_000));
    assert.equal(record.intent.length, 1024);
    assert.ok(isSameOperation(record, grow));
    const reworded = { ...record, intent: "Worded in another way." };
    assert.ok(isSameOperation(reworded, grow));
    assert.ok(!isSameOperation(record, changed({ sizeBytes: 11 })));
  });

  it("tells nothing of secrets", () => {
    const { key } = keyOf(changed({ content: new Uint8Array([1]) }));
    assert.equal(keyOf(changed({ content: new Uint8Array([2]) })).key, key);
  });

  it("is unknown of a record that 0.1 wrote, which may be any operation", () => {
    assert.ok(isSameOperation({}, grow));
  });
});

describe("the window of an operation", () => {
  it("is measured on the clock of the boot, whatever happens to the date", () => {
    const clock = new VirtualClock();
    const record = opened(clock);
    clock.advance(59_000);
    assert.equal(windowLeftMs({ ...record, since: "1970-01-01T00:00:00Z" }, clock), 1_000);
    clock.advance(1_000);
    assert.equal(windowLeftMs({ ...record, since: "2099-01-01T00:00:00Z" }, clock), 0);
  });

  it("counts from the takeover where it was written on another boot", () => {
    const clock = new VirtualClock();
    const record = { ...opened(clock), clock: { boot: "another", uptimeMs: 5 } };
    clock.advance(3_600_000);
    assert.equal(windowLeftMs(record, clock), undefined);
    const taken = takenOver(record, clock);
    assert.equal(windowLeftMs(taken, clock), 60_000);
    assert.equal(taken.deadline, opened(clock).deadline, "people read when it ends");
    clock.advance(60_000);
    assert.equal(windowLeftMs(taken, clock), 0);
  });

  it("is never shorter on another boot than from the takeover, whatever the dates say", () => {
    for (const since of ["1970-01-01T00:00:00Z", "2099-01-01T00:00:00Z"]) {
      const clock = new VirtualClock();
      const record = { ...opened(clock), since, clock: { boot: "another", uptimeMs: 5 } };
      assert.equal(windowLeftMs(takenOver(record, clock), clock), 60_000);
    }
  });

  it("counts from the takeover of a record of 0.1, by the times that it has", () => {
    const clock = new VirtualClock();
    const old = {
      id: "1",
      step: "Grow",
      intent: "Grow.",
      attempt: 1,
      since: "2026-01-01T00:00:00Z",
      deadline: "2026-01-01T00:01:01Z",
    };
    assert.equal(windowLeftMs(old, clock), undefined);
    assert.equal(windowLeftMs(takenOver(old, clock), clock), 61_000);
  });
});

describe("how the last operation ended", () => {
  it("counts how often the same ended so in a row", () => {
    const clock = new VirtualClock();
    const record = opened(clock);
    const first = lastOf(record, "Done", 0);
    assert.equal(first?.times, 1);
    const second = lastOf({ ...record, ...(first && { last: first }) }, "Done", 0);
    assert.equal(second?.times, 2);
    const other = lastOf({ ...record, ...(first && { last: first }) }, "Blocked", 0);
    assert.equal(other?.times, 1);
  });
});
