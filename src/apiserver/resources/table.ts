import type { Column, Resource } from "../../api/resource.ts";
import { humanAge } from "../../kernel/human-duration.ts";
import { compileJsonPath, type JsonPath } from "../../kernel/json-path.ts";
import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";

/** The columns of one kind's table, compiled once, and how its rows are filled. */
export interface TableLayout {
  /** `columnDefinitions`, as JSON. */
  readonly columns: string;
  cells(object: KubeObject, nowMs: number): Json[];
}

const layouts = new WeakMap<Resource, TableLayout>();

/** The layout of a kind. A Resource never changes, so neither does this. */
export function tableLayoutOf(resource: Resource): TableLayout {
  const known = layouts.get(resource);
  if (known) return known;
  const made = compileLayout(resource);
  layouts.set(resource, made);
  return made;
}

const ageColumn: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "How long ago the object was created.",
};

function compileLayout(resource: Resource): TableLayout {
  const columns = resource.columns.length === 0 ? [ageColumn] : resource.columns;
  const readers = columns.map((column) => cellReader(column));
  const native = resource.native?.cells;
  const cells = native ?? ((object, nowMs) => readers.map((read) => read(object, nowMs)));
  // Events are found by what they are about: their name comes last, and only on `-o wide`.
  if (columns.some((column) => column.format === "name")) {
    return { columns: JSON.stringify(columns.map(definitionOf)), cells };
  }
  return {
    columns: JSON.stringify([nameDefinition, ...columns.map(definitionOf)]),
    cells: (object, nowMs) => [object.metadata.name ?? "", ...cells(object, nowMs)],
  };
}

const nameDefinition = {
  name: "Name",
  type: "string",
  format: "name",
  description: "The name of the object. No other of its kind has it in the same namespace.",
  priority: 0,
};

function definitionOf(column: Column): Record<string, Json> {
  const { name, type, format = "", description, priority = 0 } = column;
  return { name, type, format, description, priority };
}

function cellReader(column: Column): (object: KubeObject, nowMs: number) => Json {
  const path: JsonPath = compileJsonPath(column.jsonPath);
  return (object, nowMs) => {
    const value = path.first(object);
    return value === undefined || value === null ? null : cellOf(column.type, value, nowMs);
  };
}

/** A value that is not of its column's type is left out, as kube-apiserver does. */
function cellOf(type: Column["type"], value: unknown, nowMs: number): Json {
  switch (type) {
    case "string":
      return typeof value === "string" ? value : JSON.stringify(value);
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? ageOf(value, nowMs) : null;
  }
}

function ageOf(timestamp: string, nowMs: number): string {
  return Number.isNaN(Date.parse(timestamp)) ? "<invalid>" : humanAge(timestamp, nowMs);
}
