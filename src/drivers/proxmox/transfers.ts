import { answered, failed, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { type ListedTask, listTasksOfType, wholeLog } from "./tasks.ts";

/** The way of a volume from one VM to a slot of another. */
export interface TransferQuery {
  readonly node: string;
  readonly giver: string;
  readonly receiver: string;
  readonly slot: string;
  /** Since when both VMs are ours: before that, the ids may have been others'. */
  readonly sinceMs: number;
}

/** What the tasks of a node tell of a transfer. */
export type Transfer =
  | { readonly is: "running"; readonly task: string }
  | MadeTransfer
  /** No task of ours did it. `moves`: disks that others moved from or to one of the two VMs. */
  | { readonly is: "unproven"; readonly moves: readonly ListedTask[] };

/** Our own task renamed the volume. */
interface MadeTransfer {
  readonly is: "made";
  /** Then the receiver had the volume in its slot. */
  readonly endedWell: boolean;
  /** Its new id, where the log names it. */
  readonly volume?: string;
}

/**
 * Whether our own task moved a volume to another VM. Name, size and uniqueness of a volume under
 * the receiver's id prove nothing: anybody can make such a volume. And where somebody else moved a
 * disk of one of the two VMs after our task, the volume there may be another one by now.
 */
export async function findTransfer(
  context: DriverContext,
  query: TransferQuery,
): Promise<Answer<Transfer>> {
  const { node, giver, receiver, slot, sinceMs } = query;
  const listed = await listTasksOfType(context, { node, type: "qmmove", sinceMs });
  if (!listed.ok) return listed;
  const near = listed.value.filter(({ id }) => isAbout(id, [giver, receiver]));
  const isThisWay = ({ id }: ListedTask): boolean => {
    return id.startsWith(`${giver}-`) && id.endsWith(`>${receiver}-${slot}`);
  };
  const own = near
    .filter(({ user }) => guard("transfer-task-of-ours", user === context.user))
    .filter((task) => guard("transfer-task-this-way", isThisWay(task)))
    .filter(({ startMs }) => {
      return guard("transfer-task-recent", startMs >= sinceMs - taskTimeSlackMs);
    });
  const moves = near.filter(({ user }) => user !== context.user);
  for (const task of own) {
    const transfer = await transferBy(context, task, query);
    if (!transfer.ok) return transfer;
    if (transfer.value === undefined) continue;
    const isLast = !near.slice(0, near.indexOf(task)).some((later) => moves.includes(later));
    return answered(
      guard("transfer-not-moved-again", isLast) ? transfer.value : { is: "unproven", moves },
    );
  }
  return answered({ is: "unproven", moves });
}

/** A transfer has the id `101-scsi1>102-scsi0`; a move to another storage has that of its VM. */
function isAbout(id: string, vmids: readonly string[]): boolean {
  return id.split(">").some((end) => vmids.includes(end.replace(/-.*$/, "")));
}

/**
 * What one task of ours did. The worker renames the volume before it says that it removes the disk
 * from its VM (qemu-server, move_vm_disk; recorded on 7.4, 8.4 and 9.2); one that did not get so
 * far moved nothing. At last it names the new volume: "update VM 102: -scsi0 zfs:vm-102-disk-0,…".
 */
async function transferBy(
  { api }: DriverContext,
  { task, isRunning, endedWell }: ListedTask,
  { giver, receiver, slot }: TransferQuery,
): Promise<Answer<Transfer | undefined>> {
  if (isRunning) return answered({ is: "running", task });
  const lines = await wholeLog(api, task);
  if (lines === undefined) {
    const message = `the log of the task ${task} cannot be read, which tells where a disk is`;
    return failed({ category: "NodeUnhealthy", message });
  }
  const isRenamed = lines.some((line) => {
    return line.startsWith("removing disk '") && line.endsWith(` from VM '${giver}' config`);
  });
  if (!guard("transfer-task-renamed", endedWell || isRenamed)) return answered(undefined);
  const update = new RegExp(`^update VM ${receiver}: (?:.* )?-${slot} ([^,\\s]+)`);
  const volume = lines.map((line) => update.exec(line)?.[1]).find((one) => one !== undefined);
  return answered({ is: "made", endedWell, ...(volume === undefined ? {} : { volume }) });
}
