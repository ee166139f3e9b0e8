import { createHash } from "node:crypto";
import type { Orphan, OrphanStatus } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import { defined } from "../failures/index.ts";
import type { Find } from "./find.ts";

type DecidedFor = NonNullable<OrphanStatus["decidedFor"]>;

const digits = 16;

/**
 * Identifies what was seen. The Orphan's own uid is part of it, so that a decision that is kept
 * somewhere, as in Git, does not hold for what a later Orphan of the same id is about.
 */
export function observationOf({ metadata }: Orphan, find: Find): string {
  const { kind, externalId, node, storage, identity, sizeBytes, createdMs } = find;
  const seen = [metadata.uid, kind, externalId, node, storage, identity, sizeBytes, createdMs];
  const text = JSON.stringify(seen.map((part) => part ?? null));
  return createHash("sha256").update(text).digest("hex").slice(0, digits);
}

/**
 * What the decision in the spec was taken for. The observation that the decision names counts;
 * where it names none, the one that the status reported when the first decision was written. That
 * one stays: a tool that writes the same decision again confirms nothing by it. Pure.
 */
export function decidedForOf({ metadata, spec, status }: Orphan): DecidedFor | undefined {
  const { generation = 0 } = metadata;
  const before = status?.decidedFor;
  if (spec.decision === undefined || before?.generation === generation) return before;
  const known = before ?? reportedBefore(status, generation);
  const { observation: named = known.observation } = spec;
  return named === known.observation
    ? { ...known, generation }
    : namedOf(status, named, generation);
}

/** The decision itself names what it is about. */
function namedOf(
  status: OrphanStatus | undefined,
  observation: string | undefined,
  generation: number,
): DecidedFor {
  const seen = observation === status?.observation ? thingText(status ?? {}) : undefined;
  return defined<DecidedFor>({ generation, observation, seen });
}

/** What a person could read when this generation was written. */
function reportedBefore(
  status: OrphanStatus | undefined,
  generation: number,
): Omit<DecidedFor, "generation"> {
  const { observation, observedGeneration = generation } = status ?? {};
  if (status === undefined || observation === undefined) return {};
  return observedGeneration < generation ? { observation, seen: thingText(status) } : {};
}

/** The parts of an observation that people can compare. */
export function thingText(seen: OrphanStatus): string {
  const { size, node, storage, identity, createdAt } = seen;
  const parts = [
    size === undefined ? undefined : `${humanBytes(Number(size))} (${size} bytes)`,
    [storage, node].filter((part) => part !== undefined).join(" on "),
    identity === undefined ? undefined : `identity ${identity}`,
    createdAt === undefined ? undefined : `created ${createdAt}`,
  ];
  return parts
    .filter((part) => part !== undefined && part !== "")
    .join(", ")
    .slice(0, 512);
}

/** Why nothing is destroyed, and how to decide again. */
export function changedText(orphan: Orphan, find: Find): string {
  const { externalId } = orphan.spec;
  const seen = decidedForOf(orphan)?.seen;
  const now = thingText(seenPart(find));
  const observation = observationOf(orphan, find);
  const why =
    seen === undefined
      ? "the decision does not name what is there"
      : `what is there is not what was decided about (${seen})`;
  return (
    `Nothing was destroyed: ${why}. Now there is: ${now}. To destroy that, decide again: ` +
    `berth orphans destroy ${externalId}; or set spec.observation to ${observation}.`
  );
}

/** What a status says of a thing to tell it from others. */
export function seenPart({
  node,
  storage,
  identity,
  sizeBytes,
  createdMs,
}: Find): Pick<OrphanStatus, "node" | "storage" | "identity" | "size" | "createdAt"> {
  return defined({
    node,
    storage,
    identity,
    size: sizeBytes === undefined ? undefined : String(sizeBytes),
    createdAt: createdMs === undefined ? undefined : formatTime(createdMs),
  });
}
