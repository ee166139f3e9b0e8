/** A word of the API and what it means: the constant and its documentation in one place. */
export type Meanings = Readonly<Record<string, string>>;

/** The words of a table as constants, so that no condition or reason is ever spelled by hand. */
export function wordsOf<const M extends Meanings>(meanings: M): { readonly [K in keyof M]: K } {
  const words: Record<string, string> = {};
  for (const word of Object.keys(meanings)) words[word] = word;
  // cast: the loop above put every key there, as its own value.
  return words as { readonly [K in keyof M]: K };
}

/**
 * Why something failed. A category is decided in the driver, from codes and exact texts; it is the
 * reason of the conditions and `status.failure.category`, and each has one policy for what is next.
 */
export const failureMeanings = {
  APINotSupported: "This version of the hypervisor cannot do what is asked.",
  ConfigurationError:
    "The declaration contradicts itself or the hypervisor. A person must edit it.",
  QuotaExceeded: "The namespace's quota, or the space or memory of the hypervisor, is used up.",
  NodeUnhealthy: "The node is down, or does not take work. Berth waits for it.",
  ImageNotFound: "The image, template or volume that the machine comes from is not there.",
  LockError: "Something on the hypervisor is locked, and nobody is working on it any more.",
  NetworkError: "The hypervisor cannot be reached.",
  CreationFailed: "The hypervisor accepted the work and failed at it.",
  PermissionDenied: "The credentials lack a right, or the namespace may not use what it names.",
  OrphanedVolumes: "Volumes of an earlier machine stand under the id that was chosen.",
  IdentityConflict: "What stands there is not provably this object's machine.",
  UnknownOutcome: "The reply was lost. Berth looks before it does anything else.",
  Missing: "The machine once stood and is gone.",
  ReplacementRequired: "The change cannot be made in place. Nothing of it was applied.",
  ConflictingController:
    "Somebody else keeps undoing what Berth does, or acts for this installation. A person must decide who acts.",
  DependencyNotReady: "Another object that this one needs is missing or not ready.",
} as const satisfies Meanings;

export const failureReasons: { readonly [K in keyof typeof failureMeanings]: K } =
  wordsOf(failureMeanings);

export type FailureCategory = keyof typeof failureMeanings;

/** Conditions that every kind with a controller has; the last two are kstatus'. */
export const sharedConditionMeanings = {
  Ready: "The object is as declared, seen at this generation.",
  Reconciling: "Work is going on. Absent when there is none.",
  Stalled: "Nothing more happens until a person changes something. Absent otherwise.",
} as const satisfies Meanings;

/** Reasons that every kind may give beside the failure categories. */
export const sharedReasonMeanings = {
  Succeeded: "All is as declared.",
  Progressing: "Work is going on.",
  Paused: "The annotation berth.dev/paused is set.",
  Waiting: "Waits for a slot or a lock. Not a failure: no attempt is counted.",
  AwaitingApproval: "The plan waits for the annotation berth.dev/approve with its hash.",
  Unreachable:
    "The hypervisor or the node cannot be asked: what was seen last may no longer be true.",
  Deleting: "The object is being deleted.",
} as const satisfies Meanings;

export const sharedReasons: { readonly [K in keyof typeof sharedReasonMeanings]: K } =
  wordsOf(sharedReasonMeanings);
