import { parentPort } from "node:worker_threads";
import { assert, unreachable } from "../kernel/assert.ts";
import type { JournalRecord } from "./journal.ts";
import { failpointsOf } from "./sqlite-failpoints.ts";
import { SqliteWriter, type SqliteWriterOptions } from "./sqlite-writer.ts";
import { StoreError, type StoreErrorCode } from "./store.ts";

/** What the thread is asked, one at a time. */
export type WriterRequest =
  | { readonly do: "open"; readonly options: SqliteWriterOptions }
  | { readonly do: "append"; readonly records: readonly JournalRecord[] }
  | {
      readonly do: "compact";
      readonly compactedRevision: number;
      readonly superseded: readonly number[];
    }
  | { readonly do: "limitPages"; readonly pagesMax: number }
  | { readonly do: "close" };

/** Its answer to each. An error whose outcome is unknown ends the thread instead. */
export type WriterReply =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: StoreErrorCode; readonly message: string };

const port = parentPort;
assert(port, "this file is run as a thread");
let writer: SqliteWriter | undefined;

port.on("message", (request: WriterRequest) => {
  port.postMessage(reply(request));
  if (request.do === "close") port.close();
  else writer?.checkpointIfDue();
});

function reply(request: WriterRequest): WriterReply {
  try {
    perform(request);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return { ok: false, code: error.code, message: error.message };
  }
}

function perform(request: WriterRequest): void {
  if (request.do === "open") {
    writer = new SqliteWriter(request.options, failpointsOf(request.options));
    return;
  }
  assert(writer, "the thread is told to open first");
  switch (request.do) {
    case "append":
      return writer.append(request.records);
    case "compact":
      return writer.compact(request.compactedRevision, request.superseded);
    case "limitPages":
      return writer.limitPages(request.pagesMax);
    case "close":
      return writer.close();
    default:
      return unreachable(request);
  }
}
