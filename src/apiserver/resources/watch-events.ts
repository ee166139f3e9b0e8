import type { Resource } from "../../api/resource.ts";
import { apiVersionOf } from "../../kernel/object.ts";
import type { ApiError } from "../../kernel/status.ts";
import type { Change, Entry } from "../../store/store.ts";
import { decode, encode } from "../objects/index.ts";
import type { Shape } from "./negotiate.ts";
import { isSelected } from "./select.ts";
import type { Selection } from "./selection.ts";
import { metaApiVersion, shapeOne, shapeTable, type Item } from "./shape.ts";
import { itemOf } from "./write.ts";

export type EventType = "ADDED" | "MODIFIED" | "DELETED";

/** One change as a watcher with a certain selection sees it. */
export interface SeenChange {
  readonly type: EventType;
  readonly item: Item;
}

/**
 * What a change is to a watcher: an object that comes to match was added, one that no longer
 * matches was deleted. Undefined: it has nothing to do with this watcher.
 */
export function seenBy(selection: Selection, change: Change): SeenChange | undefined {
  const { entry, previous } = change;
  const matched = previous !== undefined && isSelected(previous, selection);
  const matches = change.type === "put" && isSelected(entry, selection);
  if (matches) return { type: matched ? "MODIFIED" : "ADDED", item: itemOf(entry) };
  if (!matched) return undefined;
  const last = change.type === "delete" ? itemOf(entry) : lastSeen(previous, entry.revision);
  return { type: "DELETED", item: last };
}

/** What the watcher saw last, under the revision of the change that took it out of sight. */
function lastSeen(previous: Entry, revision: number): Item {
  const value = encode(decode(previous), revision);
  return itemOf({ id: previous.id, revision, value });
}

/** So many bytes of encoded events are kept for the other watchers of the same change. */
const recentBytesMax = 4 * 1024 * 1024;

/**
 * The events that were last encoded. All watchers hear of a change one right after the other, so a
 * short memory is enough for each event to be encoded once; an unbounded one would hold every
 * object twice.
 */
export class RecentEvents {
  readonly #events = new Map<Uint8Array, Map<EventType, Uint8Array>>();
  #bytes = 0;

  /** The event in the form of plain objects. */
  encode({ type, item }: SeenChange): Uint8Array {
    const known = this.#events.get(item.bytes)?.get(type);
    if (known) return known;
    const event = eventBytes(type, [item.bytes]);
    this.#remember(item.bytes, type, event);
    return event;
  }

  #remember(key: Uint8Array, type: EventType, event: Uint8Array): void {
    const ofObject = this.#events.get(key) ?? new Map<EventType, Uint8Array>();
    this.#events.set(key, ofObject.set(type, event));
    this.#bytes += event.byteLength;
    for (const [oldest, events] of this.#events) {
      if (this.#bytes <= recentBytesMax) return;
      this.#events.delete(oldest);
      for (const { byteLength } of events.values()) this.#bytes -= byteLength;
    }
  }
}

export interface EncoderOptions {
  readonly resource: Resource;
  readonly shape: Shape;
  readonly nowMs: () => number;
  readonly recent: RecentEvents;
}

/** Encodes the events of one watch. */
export class EventEncoder {
  readonly #options: EncoderOptions;
  /** Only the first table of a watch carries the columns. */
  #withColumns = true;

  constructor(options: EncoderOptions) {
    this.#options = options;
  }

  change(seen: SeenChange): Uint8Array {
    const { shape, resource, recent } = this.#options;
    if (shape.as === "object") return recent.encode(seen);
    const nowMs = this.#options.nowMs();
    if (shape.as === "partial") {
      return eventBytes(seen.type, shapeOne(seen.item, { resource, shape, nowMs }));
    }
    const resourceVersion = seen.item.object().metadata.resourceVersion ?? "";
    const withColumns = this.#withColumns;
    this.#withColumns = false;
    const shaping = { resource, shape, nowMs, withColumns };
    return eventBytes(seen.type, shapeTable([seen.item], { resourceVersion }, shaping));
  }

  /** Whether the end of the initial events can be marked: a table has no place for it. */
  get marksInitialEvents(): boolean {
    return this.#options.shape.as !== "table";
  }

  /** Says how far the watch has come, and where asked for that the initial events are complete. */
  bookmark(revision: number, { endsInitialEvents }: { endsInitialEvents: boolean }): Uint8Array {
    const { shape, resource } = this.#options;
    const resourceVersion = String(revision);
    if (shape.as === "table") {
      const table = { resource, shape, nowMs: 0, withColumns: false };
      return eventBytes("BOOKMARK", shapeTable([], { resourceVersion }, table));
    }
    const { kind, apiVersion } = typeOf(resource, shape);
    const annotations = endsInitialEvents
      ? { annotations: initialEventsEnd(kind, apiVersion) }
      : {};
    const metadata = { resourceVersion, ...annotations };
    return eventBytes("BOOKMARK", [JSON.stringify({ kind, apiVersion, metadata })]);
  }
}

export function errorEvent(error: ApiError): Uint8Array {
  return eventBytes("ERROR", [JSON.stringify(error.toStatus())]);
}

function typeOf(resource: Resource, shape: Shape): { kind: string; apiVersion: string } {
  if (shape.as === "partial") {
    return { kind: "PartialObjectMetadata", apiVersion: metaApiVersion(shape.version) };
  }
  return { kind: resource.kind, apiVersion: apiVersionOf(resource.group, resource.version) };
}

/** client-go makes its list of the events, and takes the list's type from the blueprint. */
function initialEventsEnd(kind: string, apiVersion: string): Record<string, string> {
  const list = { kind: `${kind}List`, apiVersion, metadata: {}, items: [] };
  return {
    "k8s.io/initial-events-end": "true",
    "kubernetes.io/initial-events-list-blueprint": Buffer.from(JSON.stringify(list)).toString(
      "base64",
    ),
  };
}

function eventBytes(type: string, pieces: readonly (Uint8Array | string)[]): Uint8Array {
  const parts = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), ...parts, eventEnd]);
}

const eventEnd = Buffer.from("}\n");
