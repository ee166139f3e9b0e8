import { array, enumeration, object, optional, string } from "../schema/index.ts";
import { text } from "./names.ts";

/** What a change costs the running machine. */
const changeEffects = ["Live", "Reboot", "PowerOff", "DestroysData", "Refused"] as const;

/** What becomes of a VM. */
const plannedEffects = [
  "Create",
  "Adopt",
  "Change",
  "Start",
  "Stop",
  "Restart",
  "Delete",
  "Release",
] as const;

/** What `berth takeover` shows before this copy acts. */
export const plannedSteps = array(
  "What this copy of the installation would do to the VM if it acted on the hypervisor. Only set while it only observes: empty where it would do nothing, absent where it has not observed the VM.",
  object("One step.", {
    effect: enumeration("What becomes of the VM.", plannedEffects),
    intent: text("What would be done, in one sentence.", 1024),
    blockedBy: optional(text("Why it would not be done until somebody fixes that.", 1024)),
  }),
  { maxItems: 8 },
);

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
