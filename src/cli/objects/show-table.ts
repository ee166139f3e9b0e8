import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { Call, Terminal } from "../command.ts";
import { createPaint, paintStatus } from "./colour.ts";
import { selectionOf, unlessMissing } from "./found.ts";
import { typeName } from "./kinds.ts";
import type { Machine } from "./machine.ts";
import { objectPath } from "./paths.ts";
import { listPages } from "./read-objects.ts";
import type { Server } from "./server.ts";
import { alignRows, layOut, readTable, type Table, tableAccept, type TableStyle } from "./table.ts";
import type { Target } from "./targets.ts";

export interface Showing {
  readonly call: Call;
  readonly machine: Machine;
  readonly server: Server;
  readonly targets: readonly Target[];
  readonly isWide: boolean;
}

/** Prints a table per kind. Resolves with the sentences about names that are not there. */
export async function showTables(showing: Showing): Promise<readonly string[]> {
  const { call, machine, targets } = showing;
  const missing: string[] = [];
  const tables = await Promise.all(targets.map((target) => askTable(showing, target, missing)));
  const paint = createPaint(machine);
  let isFirst = true;
  tables.forEach((table, index) => {
    const target = targets[index];
    if (target === undefined || table.rows.length === 0) return;
    const rows = layOut(table, styleOf(showing, target));
    const alignment = { widths: [], paint: (cell: string) => paintStatus(paint, cell) };
    if (!isFirst) call.terminal.print("");
    for (const line of alignRows(rows, alignment)) call.terminal.print(line);
    isFirst = false;
  });
  if (isFirst && missing.length === 0) noteNothing(call.terminal, showing);
  return missing;
}

export function styleOf({ call, targets, isWide }: Showing, target: Target): TableStyle {
  return {
    isWide,
    withNamespace: call.flag("all-namespaces") && target.kind.namespaced,
    withLabels: call.flag("show-labels"),
    withHeader: !call.flag("no-headers"),
    namePrefix: targets.length > 1 ? `${typeName(target.kind)}/` : "",
  };
}

async function askTable(
  { call, server }: Showing,
  { kind, names }: Target,
  missing: string[],
): Promise<Table> {
  if (names.length === 0) {
    return joined(await listPages(server, selectionOf(call, server, kind), tableAccept));
  }
  const answers = await Promise.all(
    names.map((name) => {
      const path = objectPath({ kind, namespace: server.namespace, name });
      return unlessMissing(() => server.ask({ path, accept: tableAccept }), missing);
    }),
  );
  return joined(answers.filter(isJsonObject));
}

function joined(pages: readonly JsonObject[]): Table {
  const tables = pages.map((page) => readTable(page));
  return { columns: tables[0]?.columns ?? [], rows: tables.flatMap(({ rows }) => rows) };
}

function noteNothing(terminal: Terminal, { call, server, targets }: Showing): void {
  const isScoped = targets.some(({ kind }) => kind.namespaced) && !call.flag("all-namespaces");
  const place = isScoped ? ` in ${server.namespace} namespace` : "";
  terminal.note(`No resources found${place}.`);
}
