/** The laws that are checked: those of the promise by their number, others by a word. */
export const laws = {
  1: "One VM per declaration",
  2: "No leak",
  3: "No theft",
  4: "No data loss by implication",
  5: "Intent before effect",
  6: "No storm",
  7: "Status is observed",
  8: "Convergence",
  9: "Always a why",
  secrets: "No secret is told",
  order: "What was written stays written",
  bounds: "Nothing grows for ever",
  sound: "No part falls over",
} as const;

export type Law = keyof typeof laws;

/** A law was broken. */
export class Violation extends Error {
  readonly law: Law;

  constructor(law: Law, what: string) {
    super(`law ${law}, ${laws[law]}: ${what}`);
    this.name = "Violation";
    this.law = law;
  }
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
