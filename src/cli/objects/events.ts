import { humanAge } from "../../kernel/human-duration.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ServedKind } from "./discovery.ts";
import { listObjects } from "./read-objects.ts";
import type { Server } from "./server.ts";
import { textOf } from "./text.ts";

/** One thing that happened to an object. */
export interface Happening {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly from: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

/** What the Events tell of an object, the oldest first. Nothing where they may not be read. */
export async function happeningsOf(
  server: Server,
  served: readonly ServedKind[],
  object: KubeObject,
): Promise<Happening[]> {
  const kind = served.find(({ plural, group }) => plural === "events" && group === "");
  const { uid, namespace } = object.metadata;
  if (kind === undefined || uid === undefined) return [];
  try {
    const fieldSelector = `involvedObject.uid=${uid}`;
    const { items } = await listObjects(server, { kind, namespace, fieldSelector });
    return items.toSorted(byVersion).map(readHappening).toSorted(byTime);
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return [];
    throw error;
  }
}

/** Times are whole seconds; within one, the order of the writes tells, as far as it can be read. */
function byVersion({ metadata: a }: KubeObject, { metadata: b }: KubeObject): number {
  return Number(a.resourceVersion) - Number(b.resourceVersion) || 0;
}

function byTime(a: Happening, b: Happening): number {
  return Date.parse(a.lastAt) - Date.parse(b.lastAt) || 0;
}

/** "3m" or, where it came again, "10s (x5 over 3m)". */
export function happenedWhen({ firstAt, lastAt, count }: Happening, nowMs: number): string {
  const last = humanAge(lastAt, nowMs);
  return count > 1 ? `${last} (x${count} over ${humanAge(firstAt, nowMs)})` : last;
}

/** Both forms of Events, with a count or with a series, say the same in other fields. */
function readHappening(event: KubeObject): Happening {
  const series = mapOf(event["series"]);
  const made = text(event["eventTime"]) || event.metadata.creationTimestamp || "";
  const firstAt = text(event["firstTimestamp"]) || made;
  const count = Number(series["count"] ?? event["count"] ?? 1);
  return {
    type: text(event["type"]),
    reason: text(event["reason"]),
    message: text(event["message"]),
    from: text(event["reportingComponent"]) || text(mapOf(event["source"])["component"]),
    count: Number.isFinite(count) ? count : 1,
    firstAt,
    lastAt: text(series["lastObservedTime"]) || text(event["lastTimestamp"]) || firstAt,
  };
}

function mapOf(value: unknown): Record<string, Json> {
  return isJsonObject(value) ? value : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? textOf(value) : "";
}
