import type { Kind } from "../client/index.ts";
import { formatTime } from "../kernel/clock.ts";
import type { KubeObject, ObjectMeta } from "../kernel/object.ts";

/** An Event of the core group, in the form that every kubectl shows. */
export type EventObject = {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  involvedObject: ObjectReference;
  type: EventType;
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
};

export type EventType = "Normal" | "Warning";

export interface ObjectReference {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
}

export const eventKind: Kind<EventObject> = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  namespaced: true,
};

/** The API's own bounds, in bytes. */
const messageBytesMax = 1024;
const reasonBytesMax = 128;
/** A name has 253; the suffix needs 17. */
const namePrefixMax = 236;

/** One thing that happened to an object, however often. */
export interface Occurrence {
  readonly object: ObjectReference;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly suffix: string;
  readonly firstMs: number;
  count: number;
  lastMs: number;
}

export function referenceTo({ apiVersion, kind, metadata }: KubeObject): ObjectReference {
  const { name = "", namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

export function eventNameOf({ object, suffix }: Occurrence): { namespace: string; name: string } {
  const name = `${object.name.slice(0, namePrefixMax).replace(/[^a-z0-9]+$/, "")}.${suffix}`;
  // Those of cluster-wide objects lie in `default`, as the API demands.
  return { namespace: object.namespace ?? "default", name };
}

export function eventOf(
  occurrence: Occurrence,
  reporter: { readonly component: string; readonly instance: string },
): EventObject {
  const { object, type, reason, message } = occurrence;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: eventNameOf(occurrence),
    involvedObject: object,
    type,
    reason: truncated(reason, reasonBytesMax),
    message: truncated(message, messageBytesMax),
    ...timesOf(occurrence),
    firstTimestamp: formatTime(occurrence.firstMs),
    source: { component: reporter.component },
    reportingComponent: reporter.component,
    reportingInstance: reporter.instance,
  };
}

/** What changes in an Event when the same happens again. */
export function timesOf({ count, lastMs }: Occurrence): { count: number; lastTimestamp: string } {
  return { count, lastTimestamp: formatTime(lastMs) };
}

/** At most so many bytes, never half a character, and it shows that something is missing. */
function truncated(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax) return text;
  const bytes = Buffer.from(text).subarray(0, bytesMax - Buffer.byteLength("…"));
  return `${new TextDecoder().decode(bytes).replace(/\uFFFD+$/, "")}…`;
}
