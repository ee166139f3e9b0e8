import { describe, test } from "node:test";
import { type FailpointName, failpointTable } from "../../src/kernel/failpoints.ts";
import { type Phase, Stage } from "./support/stage.ts";
import "./support/cleanup.ts";

const phases = ["create", "change", "delete"] as const;

/** What reaches each point. A point without a line does not compile. */
const reachedBy: Record<FailpointName, readonly Phase[]> = {
  "before-effect": phases,
  "after-effect": phases,
  "before-intent": phases,
  "after-intent": phases,
  "before-status": ["create", "change"],
  "after-status": ["create", "change"],
  "before-claim-create": ["create"],
  "after-claim-create": ["create"],
  "before-claim-update": phases,
  "after-claim-update": phases,
  "before-claim-delete": ["delete"],
  "after-claim-delete": ["delete"],
  "before-finalizer-add": ["create"],
  "after-finalizer-add": ["create"],
  "before-finalizer-remove": ["delete"],
  "after-finalizer-remove": ["delete"],
  "before-lease": phases,
  "after-lease": phases,
  "before-append": phases,
  "after-append": phases,
  "before-flush": phases,
  "after-flush": phases,
  // Compaction comes by time, and the last checkpoint with the end: see below.
  "before-compact": [],
  "after-compact": [],
  "before-checkpoint": [],
  "after-checkpoint": [],
};

/** Where there is time, it dies at more of its effects, and what has to be waited for is. */
const hasTime = process.env["BERTH_REQUIRE_REAL"] === "1";
/** An intent whose effect is not to be seen is believed to be void only after a minute. */
const minuteMs = 65_000;
/** Changes are kept for five minutes, and looked at every thirty seconds. */
const compactMs = 10 * 60_000;

// Most of their time goes by in waiting for workers, leases and guests.
describe("killed at", { concurrency: 4 }, () => {
  for (const name of Object.keys(failpointTable) as FailpointName[]) {
    const during = reachedBy[name];
    if (during.length === 0) continue;
    for (const visit of visitsOf(name)) {
      const title = `${name}@${visit} (${during.join(", ")})`;
      test(`${title} it makes one machine, changes it and leaves nothing`, async (t) => {
        const stage = await Stage.open();
        t.after(() => stage.remove());
        await live(stage, { name, visit, during });
      });
    }
  }
});

function visitsOf(name: FailpointName): readonly number[] {
  return hasTime && hasMany(name) ? [1, 2, 3, 5] : [1];
}

/** Two machines have more than a dozen of them. */
function hasMany(name: FailpointName): boolean {
  return name.endsWith("-effect") || name.endsWith("-intent");
}

describe("killed while it tidies up its disk, at", { concurrency: 4 }, () => {
  const tidied: [FailpointName, (stage: Stage) => void][] = [
    ["before-compact", (stage) => stage.pass(compactMs)],
    ["after-compact", (stage) => stage.pass(compactMs)],
    ["before-checkpoint", (stage) => process.kill(stage.berth.pid, "SIGTERM")],
    ["after-checkpoint", (stage) => process.kill(stage.berth.pid, "SIGTERM")],
  ];
  for (const [name, tidy] of tidied) {
    test(`${name} it has everything, and goes on`, async (t) => {
      const stage = await Stage.open();
      t.after(() => stage.remove());
      await stage.start({ BERTH_FAILPOINT: name });
      await stage.prepare();
      await stage.ask("create");
      await stage.settle("create");
      stage.arm();
      tidy(stage);
      await stage.diedAt(name);
      await stage.start();
      await stage.settle("create");
      await stage.ask("delete");
      await stage.settle("delete");
    });
  }
});

interface Death {
  readonly name: FailpointName;
  readonly visit: number;
  readonly during: readonly Phase[];
}

/** A whole life of two machines, in which the process dies at the same point in each phase. */
async function live(stage: Stage, { name, visit, during }: Death): Promise<void> {
  const armed = { BERTH_FAILPOINT: `${name}@${visit}` };
  await stage.start(armed);
  await stage.prepare();
  for (const [i, phase] of phases.entries()) {
    if (during.includes(phase)) {
      stage.arm();
      // The server may die of the very request.
      await stage.ask(phase).catch(() => undefined);
      await stage.diedAt(name);
      // Everybody's clock says that a minute has passed, unless it does.
      const waits = hasTime && hasMany(name) && visit === 1;
      if (!waits) stage.pass(minuteMs);
      const next = phases[i + 1];
      await stage.start(next !== undefined && during.includes(next) ? armed : {});
    }
    await stage.ask(phase);
    await stage.settle(phase);
  }
}
