import type { Resource } from "../../api/resource.ts";
import { apiVersionOf, type KubeObject } from "../../kernel/object.ts";
import type { IncludeObject, MetaVersion, Shape } from "./negotiate.ts";
import { tableLayoutOf } from "./table.ts";

/** An object as it is stored, and parsed only if somebody has to look inside. */
export interface Item {
  readonly bytes: Uint8Array;
  object(): KubeObject;
}

/** The `metadata` of a list. */
export interface ListMetadata {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

/** JSON in pieces, to be sent one after the other. Stored objects go out as they are. */
export type Pieces = (Uint8Array | string)[];

interface Shaping {
  readonly resource: Resource;
  readonly shape: Shape;
  readonly nowMs: number;
}

/** One object in the form that was asked for. */
export function shapeOne(item: Item, shaping: Shaping): Pieces {
  const { shape } = shaping;
  switch (shape.as) {
    case "object":
      return [item.bytes];
    case "partial":
      return [partialObject(item, shape.version)];
    case "table": {
      const resourceVersion = item.object().metadata.resourceVersion ?? "";
      return shapeTable([item], { resourceVersion }, { ...shaping, withColumns: true });
    }
  }
}

/** A list in the form that was asked for. */
export function shapeList(
  items: readonly Item[],
  metadata: ListMetadata,
  shaping: Shaping,
): Pieces {
  const { resource, shape } = shaping;
  switch (shape.as) {
    case "object": {
      const apiVersion = apiVersionOf(resource.group, resource.version);
      const head = listHead(`${resource.kind}List`, apiVersion, metadata);
      return enclosed(
        `${head},"items":[`,
        items.values().map(({ bytes }) => bytes),
      );
    }
    case "partial": {
      const head = listHead("PartialObjectMetadataList", metaApiVersion(shape.version), metadata);
      const parts = items.values().map((item) => partialObject(item, shape.version));
      return enclosed(`${head},"items":[`, parts);
    }
    case "table":
      return shapeTable(items, metadata, { ...shaping, withColumns: true });
  }
}

/** A table of some objects. In a watch only the first event carries the columns. */
export function shapeTable(
  items: readonly Item[],
  metadata: ListMetadata,
  shaping: Shaping & { readonly withColumns: boolean },
): Pieces {
  const { resource, shape, nowMs, withColumns } = shaping;
  const version = shape.as === "object" ? "v1" : shape.version;
  const include = shape.as === "table" ? shape.include : "Metadata";
  const layout = tableLayoutOf(resource);
  const rows = items.values().map((item): string => {
    const cells = JSON.stringify(layout.cells(item.object(), nowMs));
    return `{"cells":${cells},"object":${rowObject(item, include, version)}}`;
  });
  const head = listHead("Table", metaApiVersion(version), metadata);
  const columns = withColumns ? layout.columns : "[]";
  return enclosed(`${head},"columnDefinitions":${columns},"rows":[`, rows);
}

function rowObject(item: Item, include: IncludeObject, version: MetaVersion): string {
  if (include === "None") return "null";
  if (include === "Object") return Buffer.from(item.bytes).toString("utf8");
  return partialObject(item, version);
}

export function metaApiVersion(version: MetaVersion): string {
  return `meta.k8s.io/${version}`;
}

function partialObject(item: Item, version: MetaVersion): string {
  const apiVersion = metaApiVersion(version);
  const { metadata } = item.object();
  return JSON.stringify({ kind: "PartialObjectMetadata", apiVersion, metadata });
}

function listHead(kind: string, apiVersion: string, metadata: ListMetadata): string {
  return JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1);
}

/** Ten thousand objects come through here, so there is one list and no others. */
function enclosed(head: string, parts: Iterable<Uint8Array | string>): Pieces {
  const pieces: Pieces = [head];
  for (const part of parts) {
    if (pieces.length > 1) pieces.push(comma);
    pieces.push(part);
  }
  pieces.push("]}");
  return pieces;
}

const comma = Buffer.from(",");
