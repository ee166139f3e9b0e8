import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Shape, shapeDifferences } from "../../hypervisor/index.ts";
import { Bench } from "../../hypervisor/testing/stage.ts";
import { type Release, releases } from "../../sim/index.ts";
import { simulatedStage } from "./testing/simulated-stage.ts";
import { anyDevices, anyShape } from "./translate/testing/shapes.ts";

/** Each makes a whole machine on a simulated cluster; the translation alone is tried far more. */
const runs = { numRuns: 25 };

describe("what was declared is what is seen", () => {
  for (const release of releases) {
    it(`on Proxmox VE ${release}: made, observed, and nothing is left to change`, async () => {
      await fc.assert(
        fc.asyncProperty(anyShape, someDevices(release), async (plain, devices) => {
          const bench = await connected(release);
          const declared = { ...plain, ...devices };
          const { shape, refusals } = bench.driver.fit(withKnownBridges(declared));
          fc.pre(refusals.length === 0);
          const claim = await bench.claim();
          const { disks = [], ...rest } = shape;
          const { node, storage } = bench.stage;
          await bench.succeed({ kind: "create", claim, node, shape });
          for (const disk of disks) {
            const made = {
              ...disk,
              storage,
              sizeBytes: 1024 ** 3,
              fill: { from: "blank" },
            } as const;
            await bench.succeed({ kind: "addDisk", claim, at: await bench.at(claim), disk: made });
          }
          // What needs a volume of its own is made by a change.
          await bench.carryOut({ kind: "configure", claim, at: await bench.at(claim), shape });
          const seen = await bench.ours(claim);
          assert.deepEqual(shapeDifferences({ ...rest, disks }, seen.shape), []);
          const again = await bench.begin({
            kind: "configure",
            claim,
            at: await bench.at(claim),
            shape,
          });
          assert.deepEqual(again, { outcome: "done" });
        }),
        runs,
      );
    });

    it(`on Proxmox VE ${release}: one shape becomes another by a single change`, async () => {
      await fc.assert(
        fc.asyncProperty(anyShape, anyShape, async (first, second) => {
          const bench = await connected(release);
          const from = bench.driver.fit({ ...withKnownBridges(first), ...noParts });
          // Keys and modules stay what they are: that they do is another test's matter.
          const fixed = first.firmware === undefined ? {} : { firmware: first.firmware };
          const to = bench.driver.fit({ ...withKnownBridges(second), ...noParts, ...fixed });
          fc.pre(from.refusals.length === 0 && to.refusals.length === 0);
          const claim = await bench.shell(from.shape);
          const at = await bench.at(claim);
          await bench.succeed({ kind: "configure", claim, at, shape: to.shape });
          const seen = await bench.ours(claim);
          assert.deepEqual(shapeDifferences(to.shape, seen.shape), []);
        }),
        runs,
      );
    });
  }
});

/** A release without mappings refuses every device, and rightly: that is another test's matter. */
function someDevices(release: Release): fc.Arbitrary<Shape> {
  return release === "7.4" ? fc.constant({}) : anyDevices;
}

/** Parts have places of their own, which are stamped first: that is another test's matter. */
const noParts: Shape = { disks: [], networks: [], cdroms: [] };

/** What a release cannot have is known once it was asked for its version. */
async function connected(release: Release): Promise<Bench> {
  const bench = new Bench(simulatedStage(release));
  await bench.stage.settle(bench.driver.system());
  return bench;
}

/** A bridge that is not there is refused, and rightly: that is another test's matter. */
function withKnownBridges(shape: Shape): Shape {
  const networks = shape.networks?.map((card) => ({ ...card, network: "vmbr0" }));
  return networks === undefined ? shape : { ...shape, networks };
}
