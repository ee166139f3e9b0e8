import { Dice } from "./dice.ts";
import type { Trouble } from "./trouble.ts";

/** Something that a seed lets happen, by its place in the history. */
export interface Step {
  readonly index: number;
  readonly name: string;
}

/** The first steps declare machines, one right after the other. */
const declarations = 3;
/** So many more steps has a history that takes its time. */
const longer = 10;

/**
 * What a seed lets happen, one step after the other. Each step is decided by the seed and its place
 * alone, so that a history can be told again with some of them left out. Every trouble rolls dice
 * of its own name, so that one more of them changes only the steps that it takes.
 */
export class Script {
  readonly #seed: number;
  readonly #allowed: readonly Trouble[];
  readonly #declare: Trouble;
  /** At least so many; a history of few events is given more. */
  readonly least: number;

  /** Time for what takes minutes, between some of the steps. */
  readonly #isLong: boolean;

  constructor(seed: number, menu: readonly Trouble[], isLong = false) {
    this.#seed = seed;
    this.#isLong = isLong;
    // Fewer kinds of trouble, and more of each, find what all of it together would hide.
    const share = Dice.of(seed, "share").pick([0.3, 0.5, 0.8]);
    const isAllowed = (name: string): boolean => Dice.of(seed, `allow ${name}`).chance(share);
    this.#allowed = menu.filter(({ name, isAlways }) => isAlways === true || isAllowed(name));
    this.least = declarations + Dice.of(seed, "length").between(8, 24) + (isLong ? longer : 0);
    const declare = menu.find(({ name }) => name === "declare");
    if (declare === undefined) throw new Error("nothing can be declared");
    this.#declare = declare;
  }

  waitMs(index: number): number {
    if (index < declarations) return 0;
    const long = Dice.of(this.#seed, `long wait ${index}`);
    if (this.#isLong && long.chance(0.4)) return long.between(30_000, 90_000);
    return Dice.of(this.#seed, `wait ${index}`).pick([50, 300, 1_000, 3_000, 10_000]);
  }

  trouble(index: number): Trouble {
    if (index < declarations) return this.#declare;
    const dice = (name: string): Dice => Dice.of(this.#seed, `pick ${index} ${name}`);
    return pickWeighted(this.#allowed, dice);
  }
}

/**
 * Each draws when it would come, sooner on average the more it weighs, and the first one comes: as
 * often as its share of all weights, and without a roll that two of them have in common.
 */
function pickWeighted(troubles: readonly Trouble[], dice: (name: string) => Dice): Trouble {
  let [first, firstAt] = [troubles[0], Infinity];
  for (const trouble of troubles) {
    const at = -Math.log(1 - dice(trouble.name).random.number()) / trouble.weight;
    if (at < firstAt) [first, firstAt] = [trouble, at];
  }
  if (first === undefined) throw new Error("no trouble is allowed");
  return first;
}
