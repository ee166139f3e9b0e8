import { sleep } from "../../kernel/clock.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { usageError } from "../command.ts";
import { createPaint, paintStatus } from "./colour.ts";
import { readChange } from "./follow-object.ts";
import { selectionOf } from "./found.ts";
import { nameLine, type Output, withoutManagedFields } from "./output.ts";
import { collectionPath } from "./paths.ts";
import {
  listPages,
  resourceVersionOf,
  type Selection,
  selectors,
  toObject,
} from "./read-objects.ts";
import { type Showing, styleOf } from "./show-table.ts";
import { alignRows, layOut, readTable, tableAccept, type TableColumn } from "./table.ts";
import type { Target } from "./targets.ts";

/** A server that ends every watch at once must not be asked in a tight loop. */
const pauseMs = 500;

/** Prints what is there, and then every change, until the signal is aborted. */
export async function watchTargets(
  showing: Showing,
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  const [target, ...others] = showing.targets;
  if (target === undefined || others.length > 0 || target.names.length > 1) {
    throw usageError("--watch takes one kind, and at most one name");
  }
  const { server } = showing;
  const isTable = output.form === "table";
  const print = isTable ? tablePrinter(showing, target) : objectPrinter(showing, target, output);
  const accept = isTable ? tableAccept : "application/json";
  const selection = watchedSelection(showing, target);
  for (;;) {
    const pages = await listPages(server, selection, accept);
    for (const page of pages) print(page);
    const resourceVersion = resourceVersionOf(pages[0]);
    const path = collectionPath(target.kind, selection.namespace);
    const query = { ...selectors(selection), watch: "true", resourceVersion };
    await printChanges(server.follow({ path, query, accept, signal }), print);
    await sleep(server.clock, pauseMs, signal);
  }
}

/** Until the watch ends, or is too old to go on. */
async function printChanges(lines: AsyncIterable<Json>, print: Printer): Promise<void> {
  for await (const line of lines) {
    const change = readChange(line);
    if (change === undefined) return;
    if (change.type !== "BOOKMARK") print(change.object);
  }
}

function watchedSelection({ call, server }: Showing, { kind, names }: Target): Selection {
  const selection = selectionOf(call, server, kind);
  const [name] = names;
  return name === undefined ? selection : { ...selection, fieldSelector: `metadata.name=${name}` };
}

/** Prints a list, or one object, in the form that was asked for. */
type Printer = (answer: Json) => void;

/** A list that is read again repeats what is known: only what is new of it is printed. */
function createMemory(): (item: {
  namespace?: string;
  name?: string;
  version?: string;
}) => boolean {
  const printed = new Map<string, string>();
  return ({ namespace = "", name = "", version = "" }) => {
    const key = `${namespace}/${name}`;
    const isNew = version === "" || printed.get(key) !== version;
    printed.set(key, version);
    return isNew;
  };
}

function tablePrinter(showing: Showing, target: Target): Printer {
  const { call, machine } = showing;
  const style = styleOf(showing, target);
  const paint = createPaint(machine);
  const alignment = { widths: [], paint: (cell: string) => paintStatus(paint, cell) };
  const isNew = createMemory();
  let columns: readonly TableColumn[] | undefined;
  return (answer) => {
    if (!isJsonObject(answer)) return;
    const table = readTable(answer, columns);
    const rows = table.rows.filter(({ namespace, name, resourceVersion: version }) => {
      return isNew({ namespace, name, version });
    });
    if (rows.length === 0) return;
    const withHeader = style.withHeader && columns === undefined;
    columns = table.columns;
    const cells = layOut({ columns, rows }, { ...style, withHeader });
    for (const line of alignRows(cells, alignment)) call.terminal.print(line);
  };
}

function objectPrinter({ call }: Showing, { kind }: Target, output: Output): Printer {
  const isNew = createMemory();
  return (answer) => {
    const items =
      isJsonObject(answer) && Array.isArray(answer["items"]) ? answer["items"] : [answer];
    for (const item of items) {
      const object = toObject(item, kind);
      const { namespace = "", name = "", resourceVersion: version = "" } = object.metadata;
      if (!isNew({ namespace, name, version })) continue;
      if (output.form === "name") call.terminal.print(nameLine(kind, object));
      if (output.form === "text") call.terminal.print(output.write(withoutManagedFields(object)));
    }
  };
}
