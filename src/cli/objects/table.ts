import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { textOf } from "./text.ts";

/** Asks for rows that the server laid out, or for the objects where it cannot. */
export const tableAccept =
  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io," +
  "application/json";

export interface Table {
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
}

export interface TableColumn {
  readonly name: string;
  /** Columns above 0 are for `-o wide`. */
  readonly priority: number;
  readonly isName: boolean;
}

export interface TableRow {
  readonly cells: readonly string[];
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, Json>>;
}

/** Reads a Table; a list that is none becomes one of names. */
export function readTable(answer: JsonObject, known?: readonly TableColumn[]): Table {
  if (answer["kind"] !== "Table") return tableOfNames(answer);
  const definitions = listOf(answer["columnDefinitions"]);
  // In a watch only the first event says what the columns are.
  const columns = definitions.length > 0 ? definitions.map(readColumn) : (known ?? []);
  return { columns, rows: listOf(answer["rows"]).map(readRow) };
}

function readColumn(definition: JsonObject): TableColumn {
  const { name, priority, format } = definition;
  return {
    name: typeof name === "string" ? name : "",
    priority: typeof priority === "number" ? priority : 0,
    isName: format === "name",
  };
}

function readRow(row: JsonObject): TableRow {
  const object = isJsonObject(row["object"]) ? row["object"] : {};
  const cells = Array.isArray(row["cells"]) ? row["cells"] : [];
  return { cells: cells.map(cellText), ...identityOf(object) };
}

function tableOfNames(answer: JsonObject): Table {
  const objects = Array.isArray(answer["items"]) ? listOf(answer["items"]) : [answer];
  const columns = [{ name: "Name", priority: 0, isName: true }];
  const rows = objects.map((object) => {
    const identity = identityOf(object);
    return { cells: [identity.name], ...identity };
  });
  return { columns, rows };
}

function identityOf(object: JsonObject): Omit<TableRow, "cells"> {
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  const { namespace, name, resourceVersion, labels } = metadata;
  return {
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
    namespace: typeof namespace === "string" ? namespace : "",
    name: typeof name === "string" ? name : "",
    labels: isJsonObject(labels) ? labels : {},
  };
}

function cellText(cell: Json): string {
  return textOf(cell).replaceAll(/\s*\n\s*/g, " ");
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

export interface TableStyle {
  readonly isWide: boolean;
  readonly withNamespace: boolean;
  readonly withLabels: boolean;
  readonly withHeader: boolean;
  /** "virtualmachine.berth.dev/", where rows of several kinds are shown. */
  readonly namePrefix: string;
}

/** The cells to show, the header first. */
export function layOut(table: Table, style: TableStyle): string[][] {
  const shown = table.columns.flatMap((column, index) => {
    return style.isWide || column.priority === 0 ? [{ ...column, index }] : [];
  });
  const header = shown.map(({ name }) => name.toUpperCase());
  const rows = table.rows.map((row) => {
    const cells = shown.map(({ index, isName }) => {
      const cell = row.cells[index] ?? "";
      return isName ? style.namePrefix + cell : cell;
    });
    return withExtras(cells, row, style);
  });
  const titles = [
    ...(style.withNamespace ? ["NAMESPACE"] : []),
    ...header,
    ...(style.withLabels ? ["LABELS"] : []),
  ];
  return style.withHeader ? [titles, ...rows] : rows;
}

function withExtras(cells: string[], row: TableRow, style: TableStyle): string[] {
  const labels = Object.entries(row.labels).map(([key, value]) => `${key}=${cellText(value)}`);
  return [
    ...(style.withNamespace ? [row.namespace] : []),
    ...cells,
    ...(style.withLabels ? [labels.join(",") || "<none>"] : []),
  ];
}

/** How the rows stand in columns. Kept by a watch, so that later rows line up with the earlier. */
export interface Alignment {
  readonly widths: number[];
  /** Colours a cell, which is padded already. */
  readonly paint: (cell: string) => string;
}

/** kubectl's columns are never narrower, and ours look the same. */
const widthMin = 3;

/** Rows in columns, three spaces apart. */
export function alignRows(
  rows: readonly (readonly string[])[],
  { widths, paint }: Alignment = { widths: [], paint: (cell) => cell },
): string[] {
  for (const row of rows) {
    row.forEach((cell, i) => (widths[i] = Math.max(widths[i] ?? widthMin, cell.length)));
  }
  return rows.map((row) => {
    // The last column ends where its text does, so that a long one does not push the others.
    const cells = row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)));
    return cells.map(paint).join("   ").trimEnd();
  });
}
