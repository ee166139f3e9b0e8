import { text, time } from "../parts/names.ts";
import { array, enumeration, integer, object, optional, string } from "../schema/index.ts";
import type { Field } from "../schema/index.ts";

/** Most of each list that are recorded at once. The others wait until there is room. */
export const sweepLimits = { entries: 400, groups: 64, gone: 256 } as const;

const countMax = 1_000_000;

interface SweepTimes {
  since: string;
  ids: string[];
}

/** Times of things that one sweep saw together. Ids are shortened: hundreds have to fit. */
function times(description: string): Field<SweepTimes[]> {
  return array(
    description,
    object("Things with the same beginning.", {
      since: time("The sweep that saw it first."),
      ids: array(
        "The first 16 digits of the SHA-256 of each name.",
        string("A shortened name.", { maxLength: 16, pattern: "^[0-9a-f]{16}$" }),
        { maxItems: sweepLimits.entries },
      ),
    }),
    { maxItems: sweepLimits.groups },
  );
}

const gone = object("One thing that was expected and not seen.", {
  kind: enumeration(
    "What it is. Survey: a complete listing shows fewer VMs than the inventory of the same time.",
    ["Node", "Storage", "VMs", "Orphans", "Survey"],
  ),
  name: optional(text("The node or the storage.", 256)),
  count: optional(integer("How many are not seen.", { minimum: 0, maximum: countMax })),
  of: optional(integer("Of how many.", { minimum: 0, maximum: countMax })),
});

/** What one sweep has to know of those before, whichever process made them. */
export const sweepStatus = object(
  "What a sweep for orphans has to know of the sweeps before. While nothing changes it is not written.",
  {
    since: time(
      "When the first sweep was recorded. Nothing is deleted by policy for the grace time after it.",
    ),
    suspicion: optional(
      object(
        "Much less was seen than before. Nothing is concluded for a minute, and nothing is deleted by policy for the grace time.",
        {
          since: time("When it was last seen to become less."),
          gone: array("What is not seen any more.", gone, { maxItems: sweepLimits.gone }),
        },
      ),
    ),
    sightings: optional(times("Things that nothing declares, and that are not reported yet.")),
    absences: optional(times("Orphans with the decision Keep that the last sweep did not show.")),
    emptyClaims: optional(
      times("Claims without an object, by uid, of whose VM nothing was there."),
    ),
    unreported: optional(
      integer("How many things are not reported because too many Orphans wait for a decision.", {
        minimum: 1,
        maximum: countMax,
      }),
    ),
  },
);
