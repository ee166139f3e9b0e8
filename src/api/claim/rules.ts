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
    `${isFile("self")} || !(${wasHeld}) || (self.owner.__namespace__ == oldSelf.owner.__namespace__ && self.owner.name == oldSelf.owner.name)`,
    "a Claim of a VM that is Reserved or Bound cannot be given to another object",
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
    `!(${wasHeld}) || !${hasExisted("oldSelf")} || ${hasExisted("self")}`,
    "everExisted cannot become false again while the Claim is Reserved or Bound",
    { reason: "FieldValueForbidden", fieldPath: ".everExisted" },
  ),
  rule(`!${isFile("self")} || has(self.file)`, "a Claim of a File needs file", {
    reason: "FieldValueRequired",
    fieldPath: ".file",
  }),
  rule(`${isFile("self")} || !self.externalId.contains('/')`, "only the id of a File has a '/'", {
    reason: "FieldValueInvalid",
    fieldPath: ".externalId",
  }),
  rule(
    `${isFile("self")} == ${isFile("oldSelf")}`,
    "a Claim stays one of a File, or of something else",
    { reason: "FieldValueForbidden", fieldPath: ".target" },
  ),
  rule(
    "self.state != 'Quarantined' || has(self.quarantineUntil)",
    "a Quarantined Claim needs quarantineUntil",
    { reason: "FieldValueRequired", fieldPath: ".quarantineUntil" },
  ),
];

/** A file that several VMImages name passes from one to the other. */
function isFile(claim: "self" | "oldSelf"): string {
  return `(has(${claim}.target) && ${claim}.target == 'File')`;
}

/**
 * 0.1 wrote it by another name, and who rewrites the Claim must not lose it on the way. What is
 * stored may have neither: not every server fills in defaults of what was stored before.
 */
function hasExisted(claim: "self" | "oldSelf"): string {
  const fields = ["everExisted", "everStood"].map((field) => `${claim}.${field}`);
  return `(${fields.map((field) => `(has(${field}) && ${field})`).join(" || ")})`;
}

function list(words: readonly string[]): string {
  return `[${words.map((word) => `'${word}'`).join(", ")}]`;
}
