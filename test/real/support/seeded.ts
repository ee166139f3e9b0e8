/** A small seeded generator (mulberry32), so that a failing run can be run again. */
export interface Seeded {
  number(): number;
  below(bound: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly [T, ...T[]]): T;
  text(lengthMax: number): string;
}

const alphabet = "abzAZ019-_./%:;&?#=+ \\\"'{}[]()<>\u0000\n\t\u00e9\u4e16\ud83d\ude00~$*,!@^|`";

export function seeded(seed: number): Seeded {
  let state = seed >>> 0;
  const number = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(number() * bound);
  return {
    number,
    below,
    chance: (probability) => number() < probability,
    pick: (items) => items[below(items.length)] ?? items[0],
    text: (lengthMax) =>
      Array.from({ length: below(lengthMax + 1) }, () => alphabet[below(alphabet.length)]).join(""),
  };
}
