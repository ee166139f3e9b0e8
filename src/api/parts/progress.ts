import { failureMeanings } from "../reasons.ts";
import type { FailureCategory } from "../reasons.ts";
import { array, enumeration, integer, object, optional, string } from "../schema/index.ts";
import { text, time } from "./names.ts";

// cast: the keys of this table are its categories, and it has no others.
const categories = Object.keys(failureMeanings) as FailureCategory[];

const count = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** The open operation: written before the hypervisor hears of it, so that a crash finds it. */
export const operation = object(
  "The open operation. It is written before the hypervisor hears of it, and removed when its outcome was seen.",
  {
    id: string("Identifies this operation in logs and events.", { maxLength: 64 }),
    step: string("The step, such as Create or Resize.", { maxLength: 64 }),
    intent: text("What is being done, in one sentence.", 1024),
    attempt: integer("Which attempt this is, from 1.", { minimum: 1, maximum: 1_000_000 }),
    since: time("When it began."),
    deadline: optional(
      time("Until then an effect that is not seen yet may still arrive, so nothing is repeated."),
    ),
    task: optional(text("The hypervisor's own name of the work, where it gave one.", 512)),
    progress: optional(
      object("How far it is. Written at most every ten seconds.", {
        percent: optional(integer("Done, in percent.", { minimum: 0, maximum: 100 })),
        bytesDone: optional(integer("Bytes moved so far.", count)),
        bytesTotal: optional(integer("Bytes to move in all.", count)),
      }),
    ),
  },
);

const what = {
  category: enumeration("What kind of failure it is, which decides what happens next.", categories),
  message: text("What failed, where and why, in one sentence.", 2048),
};

const counted = {
  attempts: integer("How many attempts failed in this way, one after the other.", {
    minimum: 1,
    maximum: 1_000_000,
  }),
  firstAt: time("When it failed in this way for the first time."),
  lastAt: time("When it failed last."),
  nextRetryAt: optional(time("When Berth tries again. Absent: not before something changes.")),
  remedy: optional(text("What a person can do about it, with commands to copy.", 2048)),
};

/** The last failure, whole. Conditions carry its category and one sentence of it. */
export const failure = object("The failure that keeps the object from being Ready, if any.", {
  ...what,
  cause: optional(text("The hypervisor's own words, unshortened up to 8 KiB.", 8192)),
  step: optional(text("The step that failed.", 64)),
  ...counted,
});

/** What is counted, and held back, whatever else fails in between. */
export const failedSteps = array(
  "Steps that failed and have not ended well since, the newest last. They count until then, or until the declaration changes or a person asks for another try, also while another failure is told.",
  object("One step, and one way in which it failed.", {
    step: text("The step that failed.", 64),
    ...what,
    ...counted,
    generation: integer("The generation of the object under which it was tried.", {
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
    tried: optional(
      text("A digest of what exactly was tried. Only the same is held back until its time.", 64),
    ),
  }),
  { maxItems: 4 },
);

/** What the object waits for. Waiting is not a failure and counts no attempt. */
export const waitingFor = object(
  "What is being waited for. Not a failure: no attempt is counted.",
  {
    kind: enumeration("What kind of thing it is.", [
      "Slot",
      "Lock",
      "Dependency",
      "Task",
      "Leader",
      "Approval",
    ]),
    name: text("Which one, and who holds it where that is known.", 512),
    since: time("Since when."),
  },
);
