import type { Kind } from "../client/index.ts";
import type { ObjectMeta } from "../kernel/object.ts";

/** A Lease of coordination.k8s.io, as far as an election uses it. Fields of others are kept. */
export type LeaseObject = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  spec?: LeaseSpec;
};

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

export const leaseKind: Kind<LeaseObject> = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};

/** Who a record is written for, and when. Times are for people; nobody's safety rests on them. */
export interface LeaseWriter {
  readonly identity: string;
  readonly durationMs: number;
  /** Formatted with microseconds. */
  readonly now: string;
}

/** The spec by which somebody takes a lease that is free, or that was never there. */
export function takenSpec(spec: LeaseSpec | undefined, writer: LeaseWriter): LeaseSpec {
  return {
    ...renewedSpec(spec, writer),
    acquireTime: writer.now,
    leaseTransitions: spec === undefined ? 0 : (spec.leaseTransitions ?? 0) + 1,
  };
}

/** The spec by which the holder keeps it. */
export function renewedSpec(spec: LeaseSpec | undefined, writer: LeaseWriter): LeaseSpec {
  return {
    ...spec,
    holderIdentity: writer.identity,
    leaseDurationSeconds: Math.ceil(writer.durationMs / 1000),
    renewTime: writer.now,
  };
}

/**
 * The spec by which the holder lets go. Its duration is how long whoever takes it must wait before
 * writing: the shortest there is, or what the holder itself still had to wait for those before it.
 */
export function releasedSpec(
  spec: LeaseSpec | undefined,
  { waitMs, now }: { readonly waitMs: number; readonly now: string },
): LeaseSpec {
  const leaseDurationSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  return { ...spec, holderIdentity: "", leaseDurationSeconds, renewTime: now };
}

export function holderOf({ spec }: LeaseObject): string {
  return spec?.holderIdentity ?? "";
}

/** How long its holder may act after the record was written. */
export function durationMsOf({ spec }: LeaseObject, durationMsDefault: number): number {
  const seconds = spec?.leaseDurationSeconds;
  return seconds === undefined ? durationMsDefault : seconds * 1000;
}

/** Tells whether a record was written since: every write gives it another. */
export function versionOf({ metadata }: LeaseObject): string {
  return `${metadata.uid ?? ""}/${metadata.resourceVersion ?? ""}`;
}
