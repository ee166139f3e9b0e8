import { enumeration, integer, listMap, object, optional, string } from "../schema/index.ts";
import type { Field } from "../schema/index.ts";
import { time } from "./names.ts";
import type { Condition } from "../../kernel/object.ts";

/** Conditions as in metav1.Condition, keyed by type. */
export const conditions: Field<Condition[]> = listMap(
  "What is true of the object now. Each condition says since when, why, and at which generation.",
  object("One condition.", {
    type: string("What the condition is about, such as Ready.", {
      maxLength: 316,
      pattern: "^[A-Za-z]([A-Za-z0-9]*)$",
    }),
    status: enumeration("Whether it holds. Unknown means that it could not be seen.", [
      "True",
      "False",
      "Unknown",
    ]),
    observedGeneration: optional(
      integer("The generation of the object for which this was found.", {
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
    ),
    lastTransitionTime: time("When the status last changed."),
    reason: string("Why, as one word for programs.", {
      minLength: 1,
      maxLength: 128,
      pattern: "^[A-Za-z]([A-Za-z0-9]*)$",
    }),
    message: string("Why, for people: what, where, and what to do.", { maxLength: 4096 }),
  }),
  { key: "type", maxItems: 16 },
);

/** The generation that the whole status speaks of. */
export const observedGeneration = integer("The generation of the spec that this status is about.", {
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
});
