import type { Random } from "../../kernel/random.ts";
import { seededRandom } from "../seeded-random.ts";

/** Choices that a seed decides, in the words that a history needs. */
export class Dice {
  random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  /** Of its own for each purpose: so one more choice in one place changes no other place. */
  static of(seed: number, purpose: string): Dice {
    return new Dice(randomFor(seed, purpose));
  }

  /** From here on it decides for another purpose, whatever it has decided before. */
  turnTo(seed: number, purpose: string): void {
    this.random = randomFor(seed, purpose);
  }

  /** Decides nothing until it is turned to a purpose: who asks it now was not bound to one. */
  rest(): void {
    this.random = unnamed;
  }

  /**
   * What is done later goes on with the purpose of now, whatever is decided meanwhile; and whatever
   * it decides then, nobody else notices.
   */
  bind<Args extends unknown[]>(act: (...args: Args) => void): (...args: Args) => void {
    const { random } = this;
    return (...args) => {
      const other = this.random;
      this.random = random;
      try {
        act(...args);
      } finally {
        this.random = other;
      }
    };
  }

  /** What never happens costs no roll. */
  chance(probability: number): boolean {
    return probability > 0 && this.random.number() < probability;
  }

  /** A whole number, both ends included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.random.number() * (most - least + 1));
  }

  pick<T>(from: readonly [T, ...T[]]): T {
    return from[Math.floor(this.random.number() * from.length)] ?? from[0];
  }

  /** One of them; nothing if there are none. */
  pickAny<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.random.number() * from.length)];
  }
}

/** Dice of one place, each with a name: one roll more under a name changes no other. */
export class NamedDice {
  readonly #seed: number;
  readonly #place: string;
  readonly #dice = new Map<string, Dice>();

  constructor(seed: number, place: string) {
    this.#seed = seed;
    this.#place = place;
  }

  of(name: string): Dice {
    const known = this.#dice.get(name) ?? Dice.of(this.#seed, `${this.#place} ${name}`);
    this.#dice.set(name, known);
    return known;
  }
}

function asked(): never {
  throw new Error("dice were asked that no step of the history has named");
}

const unnamed: Random = { number: asked, bytes: asked, uuid: asked };

function randomFor(seed: number, purpose: string): Random {
  let mixed = Math.imul(seed, 0x9e37_79b1) ^ 0x51ed_270b;
  for (const character of purpose) {
    mixed = Math.imul(mixed ^ (character.codePointAt(0) ?? 0), 0x0100_0193);
  }
  return seededRandom(mixed >>> 0);
}
