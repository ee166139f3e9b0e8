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

  chance(probability: number): boolean {
    return this.random.number() < probability;
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

function randomFor(seed: number, purpose: string): Random {
  let mixed = Math.imul(seed, 0x9e37_79b1) ^ 0x51ed_270b;
  for (const character of purpose) {
    mixed = Math.imul(mixed ^ (character.codePointAt(0) ?? 0), 0x0100_0193);
  }
  return seededRandom(mixed >>> 0);
}
