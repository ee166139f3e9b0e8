/** Randomness, as an argument. The app passes the machine's, the simulation a seeded one. */
export interface Random {
  /** A number in [0, 1). */
  number(): number;
  bytes(count: number): Uint8Array;
  /** A version 4 UUID. */
  uuid(): string;
}

// Kubernetes leaves out vowels and look-alikes, so that no suffix spells a word.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789";

/** The five characters that `generateName` appends. */
export function nameSuffix(random: Random): string {
  return Array.from({ length: 5 }, () => {
    return suffixAlphabet[Math.floor(random.number() * suffixAlphabet.length)];
  }).join("");
}
