import { describe, it } from "node:test";
import { epochs } from "./testing/epochs.ts";
import { moving, parts } from "./testing/parts.ts";
import { safety, settling } from "./testing/safety.ts";
import { surveying } from "./testing/surveying.ts";
import { Bench, type Laws, type Stage } from "./testing/stage.ts";
import { working } from "./testing/working.ts";

export interface Skip {
  /** The name of the test. */
  readonly test: string;
  /** Why this hypervisor cannot have it. */
  readonly reason: string;
}

/** Describes what every driver must do, whatever it drives. */
export function describeDriver(
  name: string,
  makeStage: () => Stage,
  skips: readonly Skip[] = [],
): void {
  describe(`the driver for ${name}`, () => {
    const work = { ...working, ...parts, ...moving };
    const laws: Laws = { ...work, ...safety, ...settling, ...surveying, ...epochs };
    for (const [test, run] of Object.entries(laws)) {
      const skip = skips.find((candidate) => candidate.test === test);
      it(test, { skip: skip?.reason ?? false }, () => run(new Bench(makeStage())));
    }
  });
}
