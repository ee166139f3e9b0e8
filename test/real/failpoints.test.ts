import { randomInt } from "node:crypto";
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

/** At which visit of its point the process dies, in each phase. */
type Visits = Readonly<Record<Phase, number>>;

const first: Visits = { create: 1, change: 1, delete: 1 };
/**
 * So many visits two machines have for certain. Creating them has nine or ten intents and effects,
 * and changing them twelve or more. Deleting them has a stop and a removal each; whether there are
 * more depends on what the guests did before.
 */
const visitsMin: Visits = { create: 6, change: 6, delete: 4 };

// Most of their time goes by in waiting for workers, leases and guests.
describe("killed at", { concurrency: 4 }, () => {
  for (const name of Object.keys(failpointTable) as FailpointName[]) {
    const during = reachedBy[name];
    if (during.length === 0) continue;
    for (const visits of visitsOf(name)) {
      const death = { name, visits, during };
      const title = during.map((phase) => `${phase} ${pointOf(death, phase)}`).join(", ");
      test(`${title}: it makes one machine, changes it and leaves nothing`, async (t) => {
        const stage = await Stage.open();
        t.after(() => stage.remove());
        await live(stage, death);
      });
    }
  }
});

/** The first one, and a later one that is chosen anew for every run. */
function visitsOf(name: FailpointName): readonly Visits[] {
  return hasTime && hasMany(name) ? [first, laterVisits()] : [first];
}

function laterVisits(): Visits {
  const later = (phase: Phase): number => randomInt(2, visitsMin[phase] + 1);
  return { create: later("create"), change: later("change"), delete: later("delete") };
}

/** As the process is told: "after-intent@3". */
function pointOf({ name, visits }: Death, phase: Phase): string {
  return `${name}@${visits[phase]}`;
}

/** Each phase has several of them. */
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
  readonly visits: Visits;
  readonly during: readonly Phase[];
}

/** A whole life of two machines, in which the process dies at the same point in each phase. */
async function live(stage: Stage, death: Death): Promise<void> {
  const { name, visits, during } = death;
  const armedFor = (phase: Phase | undefined): Record<string, string> => {
    if (phase === undefined || !during.includes(phase)) return {};
    return { BERTH_FAILPOINT: pointOf(death, phase) };
  };
  // Everybody's clock says that a minute has passed, unless it does.
  const waits = hasTime && hasMany(name) && visits === first;
  await stage.start(armedFor(during[0]));
  await stage.prepare();
  for (const [i, phase] of phases.entries()) {
    if (during.includes(phase)) {
      stage.arm();
      // The server may die of the very request.
      await stage.ask(phase).catch(() => undefined);
      await stage.diedAt(name);
      if (!waits) stage.pass(minuteMs);
      await stage.start(armedFor(phases[i + 1]));
    }
    await stage.ask(phase);
    await stage.settle(phase);
  }
}
