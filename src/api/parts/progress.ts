import { failureMeanings } from "../reasons.ts";
import type { FailureCategory } from "../reasons.ts";
import { array, boolean, enumeration, integer, object, optional, string } from "../schema/index.ts";
import { text, time } from "./names.ts";

// cast: the keys of this table are its categories, and it has no others.
const categories = Object.keys(failureMeanings) as FailureCategory[];

const count = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** How an operation can end. */
const operationOutcomes = [
  "Done",
  "Progressed",
  "Refused",
  "Failed",
  "Blocked",
  "Changed",
  "Fenced",
  "Lost",
  "Abandoned",
] as const;

const endedOperation = {
  key: text("Its key.", 64),
  step: text("Its step.", 64),
  outcome: enumeration("How it ended.", operationOutcomes),
  at: time("When."),
  task: optional(text("The hypervisor's name of its task, or of the one before it.", 512)),
  times: integer("How often in a row the same operation ended so.", {
    minimum: 1,
    maximum: 1_000_000,
  }),
};

/** The open operation: written before the hypervisor hears of it, so that a crash finds it. */
export const operation = object(
  "The open operation. It is written before the hypervisor hears of it, and removed when its outcome was seen.",
  {
    version: optional(integer("The version of this form.", { minimum: 1, maximum: 1_000 })),
    id: string("Identifies this operation in logs and events.", { maxLength: 64 }),
    key: optional(
      text(
        "A digest of the step, its target and its arguments. Equal keys mean the same operation, in whatever words it is described.",
        64,
      ),
    ),
    target: optional(text("What it acts on, such as a VM or a file, by its id.", 512)),
    argumentsDigest: optional(text("A digest of its arguments alone.", 64)),
    step: string("The step, such as Create or Resize.", { maxLength: 64 }),
    intent: text("What is being done, in one sentence.", 1024),
    attempt: integer("Which attempt this is, from 1.", { minimum: 1, maximum: 1_000_000 }),
    since: time("When it began."),
    deadline: optional(
      time("Until then an effect that is not seen yet may still arrive, so nothing is repeated."),
    ),
    windowMs: optional(
      integer("For how long after it began its effect may still arrive.", {
        minimum: 0,
        maximum: 86_400_000,
      }),
    ),
    clock: optional(
      object("The clock that the window is measured on. It does not jump when the date is set.", {
        boot: text("Which boot of which machine it belongs to.", 64),
        uptimeMs: integer("The time since that boot when the window began.", count),
      }),
    ),
    slots: optional(
      array(
        "The slots that it holds while it goes on. A process that starts takes them again before it begins anything.",
        text("A slot.", 256),
        { maxItems: 8 },
      ),
    ),
    epoch: optional(text("The epoch of the installation that began it.", 64)),
    outcome: optional(
      enumeration("How it ended, where the next step rests on it. Absent: not known yet.", [
        "Done",
        "Blocked",
        "Changed",
      ]),
    ),
    cancelRequested: optional(boolean("Whether its task was asked to stop.")),
    task: optional(text("The hypervisor's own name of the work, where it gave one.", 512)),
    progress: optional(
      object("How far it is. Written at most every ten seconds.", {
        percent: optional(integer("Done, in percent.", { minimum: 0, maximum: 100 })),
        bytesDone: optional(integer("Bytes moved so far.", count)),
        bytesTotal: optional(integer("Bytes to move in all.", count)),
      }),
    ),
    last: optional(object("How the operation before this one ended.", endedOperation)),
    unfinished: optional(
      array(
        "Earlier operations that ended without a known result or were blocked, and have not been repeated yet because other steps came first. The latest comes first.",
        object("How an earlier operation ended.", endedOperation),
        { maxItems: 3 },
      ),
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

const declaration = optional(
  text("A digest of the declaration under which it failed. Another one is tried at once.", 64),
);

/** The last failure, whole. Conditions carry its category and one sentence of it. */
export const failure = object("The failure that keeps the object from being Ready, if any.", {
  ...what,
  cause: optional(text("The hypervisor's own words, unshortened up to 8 KiB.", 8192)),
  step: optional(text("The step that failed.", 64)),
  ...counted,
  declaration,
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

/** The same for one of many things in a status: what `failure` tells is not repeated here. */
export const otherFailedSteps = array(
  "Steps that failed and count still while `failure` tells another failure, the newest last. They count until the copy is there, or until the declaration changes or a person asks for another try.",
  object("One step, and one way in which it failed.", {
    step: text("The step that failed.", 64),
    ...what,
    ...counted,
    declaration,
  }),
  { maxItems: 2 },
);

/** What tells a conflict with another controller from work that goes on. */
export const recentSteps = array(
  "What Berth changed lately and somebody else can change back, the newest last. When the same is needed again and again without an edit of the declaration, it is a conflict.",
  object("One field, and the step that puts it right.", {
    step: text("The step.", 64),
    field: text("The field of the spec.", 128),
    times: array("When the last of these steps were sent, the oldest first.", time("When."), {
      maxItems: 3,
    }),
    declaration: text("A digest of the declaration that asked for it.", 64),
    conflict: optional(
      boolean("It was reported as a conflict: Berth does not repeat it for this declaration."),
    ),
  }),
  { maxItems: 16 },
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
