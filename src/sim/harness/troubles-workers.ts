import { lacksDisks } from "./hands-disks.ts";
import { later, say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { Site } from "./site.ts";
import { webImageName } from "./web-images.ts";

/** Workers that copy, killed one after the other: whatever is tried again dies again. */
export function onWorkers(makers: TroubleMakers): Trouble[] {
  const { people, hands, dice } = makers;
  return [
    {
      name: "kill imports",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        people.declareOn(site);
        const work = /^qm(config|create|clone):|^POST .*\/content$/;
        killInARow(makers, { site, work, steps: dice.between(2, 7) });
      },
    },
    {
      name: "fill the place of a killed import",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        people.declareOn(site);
        const work = /^qm(config|create|clone):|^POST .*\/content$/;
        killInARow(makers, { site, work, steps: dice.between(2, 7) });
        for (let turn = 0; turn < 4; turn += 1) {
          later(makers, [500, 20_000], () => hands.changeDisk("fillEmptySlot", lacksDisks));
        }
      },
    },
    {
      name: "kill downloads",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        // Release 7.4 takes no image files.
        if (site.release === "7.4") return;
        people.declareImage(site);
        killInARow(makers, { site, work: /^download:/, steps: dice.between(0, 4) });
        if (dice.chance(0.6)) later(makers, [0, 20_000], () => declareFromWeb(makers, site));
      },
    },
  ];
}

/** Nobody declares a VM from an image that the API did not take. */
function declareFromWeb({ world, people }: TroubleMakers, { name }: Site): void {
  const image = webImageName(name);
  const site = world.sites.get(name);
  if (site === undefined || !world.records.images.has(`default/${image}`)) return;
  people.declareOn(site, image);
}

interface Killing {
  readonly site: Site;
  /** Tasks have names like "qmconfig:101". */
  readonly work: RegExp;
  readonly steps: number;
}

function killInARow(makers: TroubleMakers, { site, work, steps }: Killing): void {
  const times = makers.dice.between(2, 5);
  say(makers, site, `the next ${times} workers that copy are killed at their step ${steps}`);
  site.model.faults.onStep({
    verdict: { kind: "kill" },
    times,
    matches: ({ name, steps: at }) => work.test(name) && at >= steps,
  });
}
