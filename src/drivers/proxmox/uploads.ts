import { answered, failed, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { Answer, RecalledTask } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { TaskSource } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { parseTask, recalled, type FileQuery, type ListedTask } from "./tasks.ts";
import type { PveApi } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { parseUpid } from "./wire/upid.ts";
import { pathPart } from "./wire/wire.ts";

/** A checksum and the target come first. */
const logLinesRead = 20;

/**
 * Our own uploads of a file. The worker of an upload has no id, but its log says "target node: X"
 * and "target file: /var/lib/vz/import/NAME" (recorded on 7.4, 8.4 and 9.2). It runs on the node
 * that was contacted, which need not be the one that gets the file (pve-storage,
 * API2/Storage/Status.pm: the method is not proxied), so the tasks of the whole cluster are read.
 *
 * While a worker computes the checksum its log does not name the file yet: one that runs may be
 * this one, and is waited for.
 */
export async function recallUploads(
  from: TaskSource,
  { node, fileName, sinceMs, user }: FileQuery,
): Promise<Answer<readonly RecalledTask[]>> {
  const uploads = await ownUploads(from, { user, sinceMs });
  if (!uploads.ok) return uploads;
  const recent = uploads.value.filter(({ isRunning, startMs }) => {
    return isRunning || startMs >= sinceMs - taskTimeSlackMs;
  });
  const found: ListedTask[] = [];
  for (const task of recent) {
    const target = await targetOf(from.api, task);
    if (!target.ok) return target;
    const { value = { node, fileName } } = target;
    if (target.value === undefined && !task.isRunning) continue;
    const isSame = value.node === node && value.fileName === fileName;
    if (guard("upload-task-same-file", isSame)) found.push(task);
  }
  return answered(found.toSorted((a, b) => b.startMs - a.startMs).map(recalled));
}

/** No clock is a day off: of what is older, the node need not be asked. It may be down. */
const dayMs = 24 * 60 * 60_000;

/** Our own uploads of the last time, on whichever node: each has a clock of its own. */
async function ownUploads(
  { api, clocks }: TaskSource,
  { user, sinceMs }: Pick<FileQuery, "user" | "sinceMs">,
): Promise<Answer<readonly ListedTask[]>> {
  const result = await api.get("/cluster/tasks");
  if (result.type !== "data") return failed(readFailureOf(result, "list the work of the cluster"));
  const uploads: ListedTask[] = [];
  for (const row of rowsOf(result.data)) {
    const upid = parseUpid(textOf(row, "upid"));
    if (upid?.type !== "imgcopy" || !guard("upload-task-of-ours", upid.user === user)) continue;
    if (row["endtime"] !== undefined && upid.startMs < sinceMs - dayMs) continue;
    const offset = await clocks.offset(api, upid.node);
    if (!offset.ok) return offset;
    uploads.push(...parseTask(row, offset.value));
  }
  return answered(uploads);
}

interface Target {
  readonly node: string;
  readonly fileName: string;
}

/** What an upload writes; undefined where its log does not say so. */
async function targetOf(api: PveApi, { task }: ListedTask): Promise<Answer<Target | undefined>> {
  const path = `/nodes/${pathPart(parseUpid(task)?.node ?? "")}/tasks/${pathPart(task)}/log`;
  const log = await api.get(path, { limit: logLinesRead });
  if (log.type !== "data") return failed(readFailureOf(log, `read the log of ${task}`));
  const lines = rowsOf(log.data).map((row) => textOf(row, "t"));
  const said = (what: string): string | undefined => {
    return lines.find((line) => line.startsWith(`${what}: `))?.slice(what.length + 2);
  };
  const [node, file] = [said("target node"), said("target file")];
  if (node === undefined || file === undefined) return answered(undefined);
  return answered({ node, fileName: file.split("/").at(-1) ?? "" });
}
