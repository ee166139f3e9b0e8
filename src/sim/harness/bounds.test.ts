import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { demandBounds, type Remains } from "./bounds.ts";

const remains: Remains = {
  objects: new Map([
    ["berth.dev/claims", 2],
    ["berth.dev/orphans", 1],
    ["core/events", 40],
  ]),
  records: 43,
  declared: 1,
  ids: 1,
  things: 1,
  starts: 1,
};

function broken(change: Partial<Remains>): () => void {
  return () => demandBounds({ ...remains, ...change });
}

function objects(bucket: string, count: number): Partial<Remains> {
  const all = new Map([...remains.objects, [bucket, count]]);
  return { objects: all, records: 0 };
}

describe("the law that nothing grows for ever", () => {
  it("allows what was declared to leave its traces", () => {
    demandBounds(remains);
  });

  it("is broken by records of objects that are no more", () => {
    assert.throws(broken({ records: 44 }), /44 records on the disk are left, and 43 may be/);
  });

  it("is broken by more Claims, Orphans or Events than anything explains", () => {
    assert.throws(broken(objects("berth.dev/claims", 4)), /4 Claims/);
    assert.throws(broken(objects("berth.dev/orphans", 3)), /3 Orphans/);
    assert.throws(broken(objects("core/events", 151)), /151 Events/);
  });
});
