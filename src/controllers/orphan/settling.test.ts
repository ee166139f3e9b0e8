import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Sweeps } from "./memory.ts";
import { endedAtSweep } from "./settling.ts";
import type { OrphanCache } from "./turn.ts";

describe("the sweep from which on an operation that ended is seen", () => {
  const record = { id: "one" };

  it("is the one after those that had begun when it ended", () => {
    const memory: OrphanCache = {};
    const sweep = new Sweeps().of("lab");
    sweep.begun = 7;
    assert.equal(endedAtSweep({ memory, sweep }, record), 7);
    sweep.begun = 9;
    assert.equal(endedAtSweep({ memory, sweep }, record), 7);
    assert.equal(endedAtSweep({ memory, sweep }, { id: "two" }), 9);
  });

  it("is a later one where that was forgotten, and none that never comes", () => {
    const sweep = new Sweeps().of("lab");
    sweep.begun = 9;
    assert.equal(endedAtSweep({ memory: {}, sweep }, record), 9);
    // The sweeps were forgotten and count from the beginning.
    const memory: OrphanCache = { ended: { id: "one", atSweep: 7 } };
    const fresh = new Sweeps().of("lab");
    fresh.begun = 1;
    assert.equal(endedAtSweep({ memory, sweep: fresh }, record), 1);
  });
});
