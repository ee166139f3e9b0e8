import { describe, it } from "node:test";
import { Bench, type Laws, type Place } from "./testing/bench.ts";
import { lasting } from "./testing/disk-laws.ts";
import { reading, watching, writing } from "./testing/laws.ts";

export interface Skip {
  /** The name of the test. */
  readonly test: string;
  readonly reason: string;
}

/** Describes what every store must do, whatever its journal is. */
export function describeStore(
  name: string,
  makePlace: () => Promise<Place>,
  skips: readonly Skip[] = [],
): void {
  describe(`a store on ${name}`, () => {
    for (const [test, run] of Object.entries({ ...writing, ...reading, ...watching, ...lasting })) {
      const skip = skips.find((candidate) => candidate.test === test);
      it(test, { skip: skip?.reason ?? false }, () => runTest(makePlace, run));
    }
  });
}

async function runTest(makePlace: () => Promise<Place>, run: Laws[string]): Promise<void> {
  const place = await makePlace();
  const bench = new Bench(place);
  try {
    await run(bench);
  } finally {
    await bench.stop();
    await place.remove();
  }
}
