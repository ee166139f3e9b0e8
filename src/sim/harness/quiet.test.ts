import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { demandSilent } from "./quiet.ts";

const rest = { written: 7, sent: 3, sweeps: ["a", "b"], orphans: ["o-1"] };

describe("the law of rest", () => {
  it("lets nothing be written or sent", () => {
    demandSilent(rest, rest);
    assert.throws(
      () => demandSilent(rest, { ...rest, written: 8 }),
      /law 8.*1 objects were written/,
    );
    assert.throws(() => demandSilent(rest, { ...rest, sent: 4 }), /law 8.*1 changes were sent/);
  });

  it("lets a sweep write what it recorded, once, and nothing else with it", () => {
    const swept = { ...rest, sweeps: ["a", "c"] };
    demandSilent(rest, { ...swept, written: 8 });
    assert.throws(() => demandSilent(rest, { ...swept, written: 9 }), /1 objects were written/);
  });

  it("lets a sweep report what it had sighted before, and nothing that is new", () => {
    // The first 16 digits of the SHA-256 of "o-2".
    const short = createHash("sha256").update("o-2").digest("hex").slice(0, 16);
    const sighted = { ...rest, sweeps: ["a", `b ${short}`] };
    const told = { ...rest, orphans: ["o-1", "o-2"], written: 10 };
    demandSilent(sighted, told);
    assert.throws(() => demandSilent(sighted, { ...told, written: 11 }), /1 objects were written/);
    assert.throws(() => demandSilent(rest, told), /3 objects were written/);
  });
});
