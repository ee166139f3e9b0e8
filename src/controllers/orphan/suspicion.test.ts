import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Gone } from "./extent.ts";
import { isBelieved, planSuspicion, type Lack } from "./suspicion.ts";

const graceMs = 3_600_000;
const of = "List";
const storage: Gone = { kind: "Storage", name: "s" };
const orphans: Gone = { kind: "Orphans", name: "s", count: 3, of: 3 };
const survey: Gone = { kind: "Survey", count: 4, of: 4 };

function lack(nowMs: number, given: Partial<Lack> = {}): Lack {
  return { standing: [], sudden: [], of, nowMs, graceMs, ...given };
}

describe("a suspicion", () => {
  const begun = { sinceMs: 0, gone: [storage] };

  it("begins when something is suddenly gone", () => {
    assert.equal(planSuspicion(undefined, lack(0)), undefined);
    assert.deepEqual(planSuspicion(undefined, lack(0, { sudden: [storage] })), begun);
  });

  it("begins for a process that has seen nothing yet, by what objects say is there", () => {
    assert.deepEqual(planSuspicion(undefined, lack(0, { standing: [storage] })), begun);
  });

  it("goes on for a process that sees the same and remembers nothing", () => {
    assert.equal(planSuspicion(begun, lack(30_000, { standing: [storage] })), begun);
  });

  it("is believed when it goes on being so", () => {
    assert.equal(isBelieved(begun, { nowMs: 59_999, of }), false);
    assert.equal(isBelieved(begun, { nowMs: 60_000, of }), true);
  });

  it("begins anew when more is gone, or again", () => {
    const more: Gone = { kind: "VMs", count: 3, of: 4 };
    const standing = [storage, more];
    const anew = { sinceMs: 30_000, gone: standing };
    assert.deepEqual(planSuspicion(begun, lack(30_000, { standing })), anew);
    const most: Gone = { kind: "VMs", count: 4, of: 4 };
    const next = planSuspicion(anew, lack(60_000, { standing: [storage, most] }));
    assert.deepEqual(next, { sinceMs: 60_000, gone: [storage, most] });
    assert.equal(planSuspicion(begun, lack(70_000, { sudden: [storage] }))?.sinceMs, 70_000);
  });

  it("lasts for the grace time, also where all is back", () => {
    assert.equal(planSuspicion(begun, lack(graceMs - 1)), begun);
    assert.equal(planSuspicion(begun, lack(graceMs)), undefined);
  });

  it("stays recorded, and is not written, while what is gone stays gone", () => {
    const still = planSuspicion(begun, lack(2 * graceMs, { standing: [storage] }));
    assert.deepEqual(still, begun);
    assert.equal(still && isBelieved(still, { nowMs: 2 * graceMs, of }), true);
  });

  it("is not ended by the list of a tick, which does not show what is gone", () => {
    const before = { sinceMs: 0, gone: [orphans] };
    assert.deepEqual(planSuspicion(before, lack(graceMs)), before);
    assert.equal(planSuspicion(before, lack(graceMs, { of: "Survey" })), undefined);
  });

  it("is not ended by a survey where the list of a tick lacks something", () => {
    assert.deepEqual(planSuspicion(begun, lack(graceMs, { of: "Survey" })), begun);
  });

  it("is never believed while the list of the same moment shows more", () => {
    const doubt = { sinceMs: 0, gone: [survey] };
    assert.equal(isBelieved(doubt, { nowMs: graceMs, of: "Survey" }), false);
    assert.equal(isBelieved(doubt, { nowMs: graceMs, of: "List" }), true, "it is tried again");
    assert.deepEqual(
      planSuspicion(doubt, lack(graceMs, { standing: [survey], of: "Survey" })),
      doubt,
    );
    const after = planSuspicion(doubt, lack(graceMs, { of: "Survey" }));
    assert.deepEqual(after, { sinceMs: graceMs - 60_000, gone: [] }, "it may be just over");
  });
});
