import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Change, Entry } from "../../store/index.ts";
import { OrderLaws } from "./laws-order.ts";

const bucket = "berth.dev/virtualmachines";
const id = "default/web";

function entry(revision: number): Entry {
  return { id, revision, value: new Uint8Array() };
}

function put(revision: number, on?: number): Change {
  const previous = on === undefined ? undefined : entry(on);
  return { type: "put", bucket, entry: entry(revision), previous };
}

function disk(revision: number, found?: number): Parameters<OrderLaws["atStore"]>[0] {
  return { revision: () => revision, get: () => (found === undefined ? undefined : entry(found)) };
}

/** What was told before a crash: an object at revision 5. */
function toldOfFive(): OrderLaws {
  const laws = new OrderLaws();
  laws.atChange(put(4));
  laws.atChange(put(5, 4));
  return laws;
}

describe("the law that what was written stays written", () => {
  it("is broken by a change that comes after a later one", () => {
    assert.throws(() => toldOfFive().atChange(put(5, 5)), /was told after revision 5/);
  });

  it("is broken by a write on an old state: what came between is lost", () => {
    assert.throws(() => toldOfFive().atChange(put(6, 4)), /is not built on revision 5/);
    toldOfFive().atChange(put(6, 5));
  });

  it("is broken by a crash that takes back what somebody was told", () => {
    assert.throws(() => toldOfFive().atStore(disk(4, 4)), /4 follows revision 5/);
    assert.throws(() => toldOfFive().atStore(disk(5, 4)), /is 4$/);
    assert.throws(() => toldOfFive().atStore(disk(5)), /is gone$/);
  });

  it("is kept by a crash that loses nothing, or leaves more than anybody was told", () => {
    toldOfFive().atStore(disk(5, 5));
    toldOfFive().atStore(disk(6, 6));
    toldOfFive().atStore(disk(6));
  });

  it("is broken by an object that comes back", () => {
    const laws = toldOfFive();
    laws.atChange({ ...put(6, 5), type: "delete" });
    laws.atStore(disk(6));
    assert.throws(() => laws.atStore(disk(6, 5)), /is 5$/);
  });
});
