import { randomInt } from "node:crypto";
import { describe, test } from "node:test";
import {
  effectsOf,
  liveThrough,
  type Saga,
  type Trouble,
  undisturbed,
} from "../../src/controllers/testing/saga.ts";

const troubles: readonly Trouble[] = [
  "crash before",
  "crash after",
  "request lost",
  "reply lost",
  "refused",
  "repeat",
  "deleted before",
  "deleted after",
  "crash before, deleted",
  "crash after, deleted",
  "step fails",
  "worker killed",
];

/**
 * A plain run strikes at every twentieth effect, with each trouble at others. Which they are is
 * chosen anew for every run, and `npm test` tells it. CI strikes at all.
 */
const stride = process.env["BERTH_REQUIRE_REAL"] === "1" ? 1 : 20;
const from = Number(process.env["BERTH_STRIKES_FROM"] ?? randomInt(stride));

/** A test for each trouble, at each effect of the machine's life. */
export function strikeAtEveryEffect(saga: Saga): void {
  describe(`a machine ${saga.name}`, async () => {
    const calm = await undisturbed(saga);
    for (const [i, trouble] of troubles.entries()) {
      const count = effectsOf(trouble, calm);
      test(`keeps the laws with "${trouble}" at any of ${count} effects`, async () => {
        // Also where there are fewer effects than that, one of them is struck.
        const first = 1 + ((from + i) % Math.min(stride, count));
        for (let at = first; at <= count; at += stride) {
          await liveThrough(saga, { trouble, at });
        }
      });
    }
  });
}
