/** The API group and version of every kind that Berth defines. */
export const group = "berth.dev";
export const version = "v1alpha1";
export const apiVersion = "berth.dev/v1alpha1";

/** Annotations that people and tools write, and controllers read. */
export const annotations = {
  /** "true": nothing is done for this object; it is still observed. */
  paused: "berth.dev/paused",
  /** A time or any new value: look again now. */
  reconcileAt: "berth.dev/reconcile-at",
  /** A time or any new value: restart the machine once. */
  restartAt: "berth.dev/restart-at",
  /** The hash of the plan that may be carried out. A stale hash approves nothing. */
  approve: "berth.dev/approve",
  /** The id of the open operation that is to end: its task is stopped, and what came of it seen. */
  cancel: "berth.dev/cancel",
  /** Why: when the object is deleted, its machine is let go, also where nobody can reach it. */
  forget: "berth.dev/forget",
  /**
   * On a Hypervisor, a time and the run in its `status.observedBy`, with a space between: that run
   * acts on it, whoever did before. A copy of the data that has the annotation too is another run.
   */
  takeoverAt: "berth.dev/takeover-at",
  /** The identity of the machine that this object had when it was exported. */
  identity: "berth.dev/identity",
} as const;

/** Labels that Berth sets on what it makes. */
export const labels = {
  /** The VMSet of a member. For selecting; membership itself is the ownerReference. */
  vmSet: "berth.dev/vm-set",
  /** The ordinal of a member in its VMSet. */
  ordinal: "berth.dev/ordinal",
  /** "namespace.name" of the GitSource that applied the object, for pruning. */
  gitSource: "berth.dev/git-source",
} as const;

export const finalizers = {
  /** On a VirtualMachine, until the absence of its machine is proven or it was let go. */
  machine: "berth.dev/machine",
  /** On a VMSnapshot, until the snapshot is gone from the hypervisor. */
  snapshot: "berth.dev/snapshot",
  /** On a VMMigration, until neither side holds anything that belongs to it alone. */
  migration: "berth.dev/migration",
  /** On a VMImage, until the files that Berth brought are gone or used by another image. */
  image: "berth.dev/image",
  /** On what others use: Hypervisor, its Secret, VMImage, VMNetwork, VMClass. */
  inUse: "berth.dev/in-use",
} as const;
