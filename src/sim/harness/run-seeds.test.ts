import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { runSeeds, type SeedsResult } from "./run-seeds.ts";

const worker = new URL("./testing/dying-worker.ts", import.meta.url);

function run(from: number, count: number, threads: number): Promise<SeedsResult> {
  return runSeeds({
    from,
    count,
    untilMs: undefined,
    threads,
    clock: new VirtualClock(),
    onProgress: () => undefined,
    signal: new AbortController().signal,
    worker,
  });
}

describe("many seeds", () => {
  it("a seed that ends its worker has failed, and the others are run all the same", async () => {
    for (const threads of [1, 2]) {
      const { done, failed } = await run(1, 7, threads);
      assert.equal(done, 7);
      assert.deepEqual(
        failed.map(({ seed }) => seed),
        [3, 5],
      );
      assert.match(failed[0]?.failure ?? "", /took its worker down: it ended with 0$/);
      assert.match(failed[1]?.failure ?? "", /took its worker down: it ended with 1: Error: boom/);
    }
  });

  it("seeds whose every worker ends are no success", async () => {
    const { done, failed } = await run(3, 1, 4);
    assert.equal(done, 1);
    assert.equal(failed.length, 1);
  });

  it("nothing fails where every worker lives", async () => {
    const { done, failed, events } = await run(6, 4, 2);
    assert.deepEqual([done, failed, events], [4, [], 1200]);
  });
});
