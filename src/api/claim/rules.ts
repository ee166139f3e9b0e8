import { rule } from "../schema/index.ts";
import type { ValidationRule } from "../schema/index.ts";

/** A Claim that somebody lives in. Only the others may be taken over. */
const wasHeld = "oldSelf.state in ['Reserved', 'Bound']";

/** Where a Claim may go from each state. Deleting it is not a transition. */
const nextStates = {
  Reserved: ["Reserved", "Bound", "Quarantined", "Released"],
  Bound: ["Bound", "Quarantined", "Released"],
  Quarantined: ["Quarantined", "Reserved"],
  Released: ["Released", "Reserved"],
} as const;

export const claimRules: readonly ValidationRule[] = [
  rule(
    Object.entries(nextStates)
      .map(([from, to]) => `(oldSelf.state == '${from}' && self.state in ${list(to)})`)
      .join(" || "),
    "a Claim goes from Reserved to Bound, from either to Quarantined or Released, and from these back to Reserved when it is taken over",
    { reason: "FieldValueForbidden", fieldPath: ".state" },
  ),
  rule(
    `!(${wasHeld}) || (self.owner.__namespace__ == oldSelf.owner.__namespace__ && self.owner.name == oldSelf.owner.name)`,
    "a Claim that is Reserved or Bound cannot be given to another object",
    { reason: "FieldValueForbidden", fieldPath: ".owner" },
  ),
  rule(
    `!(${wasHeld}) || self.identity == oldSelf.identity`,
    "the identity of a machine cannot change while its Claim is Reserved or Bound",
    { reason: "FieldValueForbidden", fieldPath: ".identity" },
  ),
  rule(
    `!(${wasHeld}) || self.installation == oldSelf.installation`,
    "a Claim that is Reserved or Bound cannot be given to another installation",
    { reason: "FieldValueForbidden", fieldPath: ".installation" },
  ),
  rule(
    `!(${wasHeld}) || !oldSelf.everStood || self.everStood`,
    "a machine that once stood has stood for ever: everStood cannot become false again",
    { reason: "FieldValueForbidden", fieldPath: ".everStood" },
  ),
  rule(
    "self.state != 'Quarantined' || has(self.quarantineUntil)",
    "a Quarantined Claim needs quarantineUntil",
    { reason: "FieldValueRequired", fieldPath: ".quarantineUntil" },
  ),
];

function list(words: readonly string[]): string {
  return `[${words.map((word) => `'${word}'`).join(", ")}]`;
}
