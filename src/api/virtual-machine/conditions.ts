import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";

export const vmConditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The machine stands, is this object's own, and has the declared power state.",
  Synced:
    "The machine is as declared. False while a change waits, is refused, or drift is reported.",
  Provisioned: "The machine exists with its disks.",
  Running: "The machine is powered on.",
  AgentReady: "The agent in the guest answers. Nothing waits for it.",
} as const satisfies Meanings;

export const vmReasonMeanings = {
  ...sharedReasonMeanings,
  Creating: "The machine is being made.",
  Adopting: "An existing machine is being taken over.",
  Updating: "A change is being made.",
  Starting: "The machine is being started.",
  Stopping: "The machine is being stopped.",
  Stopped: "The machine is powered off.",
  Suspended: "The machine's memory is saved and it does not run.",
  Unlocking: "A lock that a dead task of ours left is being cleared.",
  CleaningUp: "What an attempt left behind, and the machine does not need, is being removed.",
  Moving: "The machine is on its way to another node or hypervisor.",
  RestartRequired: "A change waits for the next restart, because updatePolicy allows none.",
  Drifted: "The machine was changed by hand, and driftPolicy says to leave it so.",
  Protected: "deletionProtection is on: switch it off to delete the machine.",
  NoAgent: "No agent has answered yet.",
  AgentDisabled: "The machine has no channel for an agent.",
} as const satisfies Meanings;

export const vmConditions: { readonly [K in keyof typeof vmConditionMeanings]: K } =
  wordsOf(vmConditionMeanings);

export const vmReasons: { readonly [K in keyof typeof vmReasonMeanings]: K } =
  wordsOf(vmReasonMeanings);
