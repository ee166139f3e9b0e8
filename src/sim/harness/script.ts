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
 * alone, so that a history can be told again with some of them left out.
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
    const dice = Dice.of(seed, "script");
    // Fewer kinds of trouble, and more of each, find what all of it together would hide.
    const share = dice.pick([0.3, 0.5, 0.8]);
    this.#allowed = menu.filter(({ isAlways }) => isAlways === true || dice.chance(share));
    this.least = declarations + dice.between(8, 24) + (isLong ? longer : 0);
    const declare = menu.find(({ name }) => name === "declare");
    if (declare === undefined) throw new Error("nothing can be declared");
    this.#declare = declare;
  }

  waitMs(index: number): number {
    if (index < declarations) return 0;
    const dice = Dice.of(this.#seed, `wait ${index}`);
    const ms = dice.pick([50, 300, 1_000, 3_000, 10_000]);
    return this.#isLong && dice.chance(0.4) ? dice.between(30_000, 90_000) : ms;
  }

  trouble(index: number): Trouble {
    if (index < declarations) return this.#declare;
    return pickWeighted(this.#allowed, Dice.of(this.#seed, `pick ${index}`));
  }
}

function pickWeighted(troubles: readonly Trouble[], dice: Dice): Trouble {
  const total = troubles.reduce((sum, { weight }) => sum + weight, 0);
  let left = dice.random.number() * total;
  for (const trouble of troubles) {
    left -= trouble.weight;
    if (left <= 0) return trouble;
  }
  throw new Error("no trouble is allowed");
}
