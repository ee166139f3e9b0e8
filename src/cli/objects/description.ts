import { humanAge } from "../../kernel/human-duration.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { type Paint, paintStatus } from "./colour.ts";
import { type Happening, happenedWhen } from "./events.ts";
import { conditionsOf } from "./expectation.ts";
import { toYaml } from "./output.ts";
import { alignRows } from "./table.ts";
import { lastApplied } from "./three-way.ts";
import { textOf } from "./text.ts";

export interface DescriptionOptions {
  readonly events: readonly Happening[];
  readonly nowMs: number;
  readonly paint: Paint;
}

/** An object for people: who it is, what it should be, how it is, what happened to it. */
export function describeObject(object: KubeObject, options: DescriptionOptions): string[] {
  const { status, ...rest } = contentOf(object);
  return [
    ...metadataLines(object, options),
    ...Object.entries(rest).flatMap(([name, value]) => section(titleOf(name), value)),
    ...statusLines(status),
    ...conditionLines(object, options),
    ...eventLines(options),
  ];
}

function metadataLines(object: KubeObject, { nowMs }: DescriptionOptions): string[] {
  const { metadata } = object;
  const annotations = { ...metadata.annotations };
  delete annotations[lastApplied];
  const rows: [string, string][] = [
    ["Name:", metadata.name ?? ""],
    ...optionalRow("Namespace:", metadata.namespace),
    ["Kind:", `${object.kind} (${object.apiVersion})`],
    ["Created:", when(metadata.creationTimestamp, nowMs)],
    ...optionalRow("Deleting since:", metadata.deletionTimestamp),
    ...optionalRow("Finalizers:", metadata.finalizers?.join(", ")),
    ...optionalRow("Owners:", metadata.ownerReferences?.map(ownerText).join(", ")),
    ["Labels:", pairs(metadata.labels)],
    ["Annotations:", pairs(annotations)],
  ];
  return alignRows(rows);
}

function ownerText({ kind, name }: { kind: string; name: string }): string {
  return `${kind}/${name}`;
}

function optionalRow(title: string, value: string | undefined): [string, string][] {
  return value === undefined || value === "" ? [] : [[title, value]];
}

function pairs(map: Readonly<Record<string, string>> | undefined): string {
  const shown = Object.entries(map ?? {}).map(([key, value]) => `${key}=${textOf(value)}`);
  return shown.length === 0 ? "<none>" : shown.join(", ");
}

/** Everything but the metadata. The content of a Secret is not for the screen. */
function contentOf(object: KubeObject): Record<string, unknown> {
  const { apiVersion: _version, kind, metadata: _metadata, ...content } = object;
  if (kind !== "Secret" || !isJsonObject(content["data"])) return content;
  const sizes = Object.entries(content["data"]).map(([key, value]) => {
    return [key, `${Buffer.from(textOf(value), "base64").byteLength} bytes`];
  });
  return { ...content, data: Object.fromEntries(sizes) };
}

function statusLines(status: unknown): string[] {
  if (!isJsonObject(status)) return [];
  const { conditions: _, ...rest } = status;
  return Object.keys(rest).length === 0 ? [] : section("Status", rest);
}

function conditionLines(object: KubeObject, { nowMs, paint }: DescriptionOptions): string[] {
  const rows = conditionsOf(object).map((condition) => [
    textOf(condition["type"]),
    textOf(condition["status"]),
    textOf(condition["reason"]),
    humanAge(condition["lastTransitionTime"], nowMs),
    textOf(condition["message"]),
  ]);
  if (rows.length === 0) return [];
  const alignment = { widths: [], paint: (cell: string) => paintStatus(paint, cell) };
  const header = ["Type", "Status", "Reason", "Since", "Message"];
  return ["Conditions:", ...indented(alignRows([header, ...rows], alignment))];
}

function eventLines({ events, nowMs }: DescriptionOptions): string[] {
  if (events.length === 0) return ["Events:  <none>"];
  const rows = events.map((event) => [
    event.type,
    event.reason,
    happenedWhen(event, nowMs),
    event.from,
    event.message.trim(),
  ]);
  const header = ["Type", "Reason", "Age", "From", "Message"];
  return ["Events:", ...indented(alignRows([header, ...rows]))];
}

function section(title: string, value: unknown): string[] {
  const lines = toYaml(value).split("\n");
  const isShort = lines.length === 1 && !isJsonObject(value);
  return isShort ? [`${title}: ${lines[0] ?? ""}`] : [`${title}:`, ...indented(lines)];
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

function titleOf(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function when(timestamp: string | null | undefined, nowMs: number): string {
  return timestamp ? `${timestamp} (${humanAge(timestamp, nowMs)} ago)` : "<unknown>";
}
