import { humanAge } from "../../kernel/human-duration.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Column, Resource } from "../resource.ts";
import { validateEvent } from "./event-rules.ts";
import { metadataMergeKeys, numberAt, structAt, textAt, withoutNulls } from "./native.ts";
import { objectReference } from "./object-reference.ts";
import { int32, struct, text, time, withDefault } from "./schema-parts.ts";

const description =
  "Something that happened to an object, for people to read. Events are kept for a while only.";

export const eventResource: Resource = {
  group: "",
  version: "v1",
  kind: "Event",
  plural: "events",
  singular: "event",
  shortNames: ["ev"],
  categories: [],
  namespaced: true,
  description,
  schema: struct(
    description,
    {
      involvedObject: objectReference("The object to which it happened."),
      related: objectReference("A second object that takes part, if there is one."),
      type: text("Normal or Warning."),
      reason: text("Why, as one CamelCase word."),
      message: text("What happened, as a sentence for people."),
      action: text("What was done, or attempted, to the object."),
      source: withDefault(
        struct("Who reports it, as older clients say it.", {
          component: text("The program."),
          host: text("The machine it runs on."),
        }),
        {},
      ),
      reportingComponent: text("The program that reports it.", { default: "" }),
      reportingInstance: text("Which instance of that program.", { default: "" }),
      firstTimestamp: time("When it was first seen, as older clients say it."),
      lastTimestamp: time("When it was last seen, as older clients say it."),
      eventTime: time("When it was first seen."),
      count: int32("How often it was seen, as older clients say it."),
      series: struct("How often and until when it was seen, if more than once.", {
        count: int32("How often it was seen."),
        lastObservedTime: time("When it was last seen."),
      }),
    },
    { required: ["involvedObject"] },
  ),
  subresources: {},
  // An Event's own name says nothing, so it comes last, and only with -o wide.
  columns: [
    column("Last Seen", ".lastTimestamp", "How long ago it was last seen."),
    column("Type", ".type", "Normal or Warning."),
    column("Reason", ".reason", "Why, as one word."),
    column("Object", ".involvedObject", "The object to which it happened."),
    wideColumn("Subobject", ".involvedObject.fieldPath", "The part of the object that is meant."),
    wideColumn("Source", ".source", "Who reports it."),
    column("Message", ".message", "What happened."),
    wideColumn("First Seen", ".firstTimestamp", "How long ago it was first seen."),
    wideColumn("Count", ".count", "How often it was seen."),
    { ...wideColumn("Name", ".metadata.name", "The name of the Event."), format: "name" },
  ],
  served: true,
  native: {
    cells: eventCells,
    prepare: withoutNulls,
    validate: validateEvent,
    mergeKeys: metadataMergeKeys,
  },
};

function column(name: string, jsonPath: string, words: string): Column {
  return { name, type: "string", jsonPath, description: words };
}

function wideColumn(name: string, jsonPath: string, words: string): Column {
  return { ...column(name, jsonPath, words), priority: 1 };
}

function eventCells(event: KubeObject, nowMs: number): Json[] {
  const involved = structAt(event, "involvedObject");
  const kind = textAt(involved, "kind").toLowerCase();
  const name = textAt(involved, "name");
  const firstSeen = humanAge(event.firstTimestamp ?? event.eventTime, nowMs);
  return [
    lastSeen(event, firstSeen, nowMs),
    textAt(event, "type"),
    textAt(event, "reason"),
    name === "" ? kind : `${kind}/${name}`,
    textAt(involved, "fieldPath"),
    reporter(event),
    textAt(event, "message").trim(),
    firstSeen,
    timesSeen(event),
    event.metadata.name ?? "",
  ];
}

function lastSeen(event: KubeObject, firstSeen: string, nowMs: number): string {
  if (isJsonObject(event.series)) return humanAge(event.series.lastObservedTime, nowMs);
  return event.lastTimestamp ? humanAge(event.lastTimestamp, nowMs) : firstSeen;
}

/** One that came once carries no count at all in the newer form. */
function timesSeen(event: KubeObject): number {
  if (isJsonObject(event.series)) return numberAt(event.series, "count") ?? 0;
  return Math.max(numberAt(event, "count") ?? 1, 1);
}

function reporter(event: KubeObject): string {
  const source = structAt(event, "source");
  const component = textAt(source, "component") || textAt(event, "reportingComponent");
  const instance = textAt(source, "host") || textAt(event, "reportingInstance");
  return instance === "" ? component : `${component}, ${instance}`;
}
