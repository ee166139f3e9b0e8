import { type FailureCategory, failureMeanings } from "../../api/index.ts";

/** What a person can do about each kind of failure, where the failure itself does not say. */
const hints: Readonly<Record<FailureCategory, string>> = {
  APINotSupported: "Upgrade the hypervisor, or take the field out of the declaration.",
  ConfigurationError: "Edit the object (berth edit, or berth apply) as the message says.",
  QuotaExceeded: "Free space or memory on the hypervisor, raise the quota, or ask for less.",
  NodeUnhealthy: "Look at the node on the hypervisor. Berth goes on once it takes work again.",
  ImageNotFound: "Check the image's name, its storage and its source; berth get vmimages.",
  LockError: "If nothing runs on the hypervisor any more, remove the lock there; Berth retries.",
  NetworkError: "Check that the hypervisor is up and its address and port are right.",
  CreationFailed: "Read the hypervisor's words; its task log has more. Then: berth retry.",
  PermissionDenied: "Give the token the right that is named, or let the namespace use the object.",
  OrphanedVolumes: "See berth orphans: destroy the volumes or take one over; or choose another id.",
  IdentityConflict: "Look at the machine there. Berth never touches what is not provably its own.",
  UnknownOutcome: "Nothing: Berth looks at the hypervisor until it knows.",
  Missing: "If it is gone for good, set onMissing: Recreate or delete the object.",
  ReplacementRequired: "Undo the change, or delete the object and apply it anew.",
  ConflictingController: "Find out who else changes it and stop one of the two; then: berth retry.",
  DependencyNotReady: "See to the object that it needs first.",
};

/** The same for what is no failure, and lasts until a person does something. */
const restingHints: Readonly<Record<string, string>> = {
  Paused: "When Berth should go on with it: berth resume.",
  RestartRequired:
    "Restart it when it suits you (berth restart), or let Berth do it: spec.updatePolicy.",
};

export interface Advice {
  readonly meaning: string;
  readonly hint: string;
  /** Where it is explained at length. */
  readonly page: string;
}

/** Undefined for reasons that are not failures. */
export function adviceOn(reason: string): Advice | undefined {
  const category = categories.find((known) => known === reason);
  if (category === undefined) return undefined;
  return { meaning: failureMeanings[category], hint: hints[category], page: pageOf(category) };
}

/** What a person can do about a condition, failure or not. */
export function hintOn(reason: string): string | undefined {
  const resting = Object.entries(restingHints).find(([known]) => known === reason)?.[1];
  return resting ?? adviceOn(reason)?.hint;
}

/** "docs/troubleshooting/lock-error.md" */
function pageOf(category: FailureCategory): string {
  const words = category.replaceAll(/([A-Z]+)(?=[A-Z][a-z])|([a-z])(?=[A-Z])/g, "$1$2-");
  return `docs/troubleshooting/${words.toLowerCase()}.md`;
}

// cast: the keys of this table are the categories, and it has no others.
const categories = Object.keys(failureMeanings) as FailureCategory[];
