import { array, enumeration, object, optional, string } from "../schema/index.ts";
import { text } from "./names.ts";

/** What a change costs the running machine. */
const changeEffects = ["Live", "Reboot", "PowerOff", "DestroysData", "Refused"] as const;

/** What is going to be done once it is allowed: the same list that `berth plan` prints. */
export const plan = object("What stands out between the declaration and the machine.", {
  hash: string(
    "Names exactly this plan. The annotation berth.dev/approve with this value lets it be carried out.",
    { maxLength: 64, pattern: "^[0-9a-z]+$" },
  ),
  changes: array(
    "The changes, in the order in which they would be made.",
    object("One change.", {
      field: text("The field, such as spec.memory.size.", 256),
      from: optional(text("What it is now.", 256)),
      to: optional(text("What it would become.", 256)),
      effect: enumeration("What the change takes, or that it cannot be made.", changeEffects),
      note: optional(text("Why it waits or is refused.", 512)),
    }),
    { maxItems: 32 },
  ),
});
