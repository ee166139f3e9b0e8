import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { type ListedTask, listTasks } from "./tasks.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { pathPart } from "./wire/wire.ts";

/**
 * Our own task that may have cloned a machine under a Claim's id, the newest first. Such a task is
 * logged under the source's id. Since 9.1 the first line of its log names the new one ("creating a
 * clone of VM 9000 with ID 1000101"), and one that names another is left out; before, nothing does
 * (recorded on 7.4, 8.4 and 9.2), so a task alone proves nothing: the id and the mark must agree.
 */
export async function findClone(
  context: DriverContext,
  claim: ClaimedMachine,
  source: string,
): Promise<Answer<ListedTask | undefined>> {
  const { api, user } = context;
  const { node, externalId, reservedAt } = claim;
  if (node === undefined) return answered(undefined);
  const sinceMs = Date.parse(reservedAt ?? "") || 0;
  const listed = await listTasks(context, { node, externalId: source, sinceMs });
  if (!listed.ok) return listed;
  const own = listed.value.filter((task) => {
    return task.type === "qmclone" && guard("clone-task-of-ours", task.user === user);
  });
  for (const task of own) {
    const path = `/nodes/${pathPart(node)}/tasks/${pathPart(task.task)}/log`;
    const log = await api.get(path, { limit: 5 });
    if (log.type !== "data") return failed(readFailureOf(log, `read the log of ${task.task}`));
    const made = madeId(log.data);
    if (guard("clone-task-same-id", made === undefined || made === externalId)) {
      return answered(task);
    }
  }
  return answered(undefined);
}

function madeId(log: unknown): string | undefined {
  return cloneIn(rowsOf(log).map((line) => textOf(line, "t")));
}

/** The id of the new VM, where the log of a clone names it. */
export function cloneIn(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const found = /^creating a clone of VM \d+ with ID (\d+)$/.exec(line.trim());
    if (found?.[1] !== undefined) return found[1];
  }
  return undefined;
}
