import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { Patience } from "./laws-retry.ts";

interface Failed {
  readonly atS: number;
  readonly waitsS?: number;
  readonly category?: string;
  readonly generation?: number;
  readonly word?: string;
}

const time = (seconds: number): string => new Date(seconds * 1000).toISOString();

function vm({ atS, waitsS, category = "NodeUnhealthy", generation = 1, word }: Failed): never {
  const nextRetryAt = waitsS === undefined ? {} : { nextRetryAt: time(atS + waitsS) };
  const lastAt = time(atS);
  const said = word === undefined ? {} : { annotations: { [annotations.reconcileAt]: word } };
  const failure = { category, message: "no", attempts: 1, firstAt: time(0), lastAt };
  return {
    metadata: { uid: "1", name: "web", generation, ...said },
    status: { failure: { ...failure, ...nextRetryAt } },
  } as never;
}

/** The wait of the last one is what is in question. */
function after(...failures: readonly Failed[]): () => void {
  const patience = new Patience();
  const all: VirtualMachine[] = failures.map((failed) => vm(failed));
  return () => {
    for (const one of all) patience.atChange(one);
  };
}

describe("the law that whoever fails waits", () => {
  it("is broken by a try that comes too soon after the first failure", () => {
    assert.throws(after({ atS: 0, waitsS: 2 }), /law 6, .* waits 2000 ms where 30000 are due/);
    for (const category of ["NetworkError", "CreationFailed"]) {
      assert.throws(after({ atS: 0, waitsS: 20, category }), /for the 1\. time/);
    }
    after({ atS: 0, waitsS: 24 })();
  });

  it("is broken by a wait that does not grow", () => {
    const first = { atS: 0, waitsS: 30 };
    const second = { atS: 40, waitsS: 60 };
    assert.throws(after(first, { atS: 40, waitsS: 30 }), /for the 2\. time.* where 60000 are due/);
    assert.throws(after(first, second, { atS: 120, waitsS: 60 }), /where 120000 are due/);
    after(first, second, { atS: 120, waitsS: 120 })();
  });

  it("counts each failure once, however often its object is written", () => {
    const first = { atS: 0, waitsS: 30 };
    after(first, first, first)();
  });

  it("starts from the beginning after another failure, an edit and a person's word", () => {
    const first = { atS: 0, waitsS: 30 };
    const again = { atS: 40, waitsS: 30 };
    after(first, { ...again, category: "NetworkError" })();
    after(first, { ...first, generation: 2 }, { ...again, generation: 2 })();
    after(first, { ...first, word: "now" }, { ...again, word: "now" })();
    after(first, { atS: 5, category: "Missing" }, again)();
  });

  it("asks nothing of what waits for something else", () => {
    after({ atS: 0 })();
    after({ atS: 0, waitsS: 1, category: "UnknownOutcome" })();
  });
});
