import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import type { ReadOf } from "../schema/index.ts";
import { hypervisorSpec } from "./spec.ts";
import { hypervisorStatus } from "./status.ts";

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "It can be reached, is the system that it was, and lets Berth do its work.",
  Reachable: "It answers, over a connection that was proven.",
  Authorized: "The credentials have the rights that are needed.",
  Swept:
    "What is there could be compared with what is declared. Absent while nothing speaks against it.",
  InUse:
    "The Hypervisor is being deleted, and something still needs it. Its message says what, and what to do. Absent otherwise.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Connected: "It answers.",
  CertificateMismatch: "The certificate is not the one that tls names.",
  CredentialsRefused: "The hypervisor does not accept the credentials.",
  CredentialsMissing: "The Secret, or a key in it, is not there.",
  CredentialsNotRenewed: "The endpoints changed: write the Secret anew or name another.",
  SystemChanged: "Another system answers than the one that systemId names. Nothing is written.",
  SystemClaimedTwice: "Another Hypervisor object already stands for this system.",
  Superseded:
    "Another run of this installation acts on it: a restored backup, or the original. Nothing is written; berth takeover changes that.",
  PlaceChanged:
    "This installation was started in another place than before: copied, restored or moved. Nothing is written until berth takeover.",
  SuspiciousSweep:
    "Suddenly much less is there than before. Nothing is concluded from it, and nothing is deleted.",
  TooManyOrphans:
    "So many things are there that nothing declares that not all of them are Orphan objects.",
  PartialView: "Some nodes could not be seen. Nothing is concluded from what is missing.",
  VirtualMachinesRemain: "VirtualMachines name this Hypervisor. It is deleted after them.",
  ClaimsRemain: "Claims hold something that Berth made on it. It is deleted after them.",
  RetainedDisksRemain:
    "A disk-holder VM on it keeps disks that say onDelete: Retain. It is deleted when they were taken back, or their Claim was deleted.",
  UnsupportedVersion: "This version of the hypervisor is not known to work.",
} as const satisfies Meanings;

export const hypervisorConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const hypervisorReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Connections to hypervisors. */
export const hypervisorKind = defineKind({
  kind: "Hypervisor",
  plural: "hypervisors",
  shortNames: ["hv"],
  namespaced: false,
  served: true,
  description:
    "A Hypervisor is a connection to a Proxmox VE cluster, a libvirt host or a vCenter, with what the machines of each namespace may use of it.",
  spec: hypervisorSpec,
  status: hypervisorStatus,
  columns: [
    column("Type", ".spec.type", "What it is."),
    column("Version", ".status.version", "The version of its software."),
    column("Endpoint", ".status.endpoint", "The endpoint in use."),
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type Hypervisor = ObjectOf<typeof hypervisorKind>;
export type WrittenHypervisor = WrittenObjectOf<typeof hypervisorKind>;
export type HypervisorSpec = ReadOf<typeof hypervisorSpec>;
export type HypervisorStatus = ReadOf<typeof hypervisorStatus>;

export { sweepLimits } from "./sweep-status.ts";
