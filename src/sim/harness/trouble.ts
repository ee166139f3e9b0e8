import type { Dice } from "./dice.ts";
import type { Hands } from "./hands.ts";
import type { People } from "./people.ts";
import type { Site } from "./site.ts";
import type { World } from "./world.ts";

/** What can happen in a history. A seed allows some of it. */
export interface Trouble {
  readonly name: string;
  /** How often it happens, against the others. */
  readonly weight: number;
  /** Every seed allows it. */
  readonly isAlways?: boolean;
  readonly strike: () => void;
}

export interface TroubleMakers {
  readonly world: World;
  readonly dice: Dice;
  readonly people: People;
  readonly hands: Hands;
  /** Starts what is dead, after so long. */
  readonly revive: (afterMs: number) => void;
}

/** Any of the clusters. */
export function siteOf({ world, dice }: TroubleMakers): Site {
  const site = dice.pickAny([...world.sites.values()]);
  if (site === undefined) throw new Error("there is no cluster");
  return site;
}

export function say({ world }: TroubleMakers, site: Site, what: string): void {
  world.trace.say("weather", () => `${site.name}: ${what}`);
}

/** Does something after a while: at least, at most so many milliseconds. */
export function later(
  { world, dice }: TroubleMakers,
  [least, most]: readonly [number, number],
  act: () => void,
): void {
  world.clock.after(dice.between(least, most), dice.bind(act));
}
