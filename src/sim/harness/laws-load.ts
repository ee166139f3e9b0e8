import type { Hypervisor } from "../../api/index.ts";
import type { ClusterState } from "../proxmox/index.ts";
import { Violation } from "./violation.ts";

/** A worker that runs on a cluster: the work that a request of Berth's began. */
export interface Work {
  readonly node: string;
  /** The type of the task and what it is about, as "qmconfig:101". */
  readonly name: string;
}

/** Tasks that copy a disk; one that writes a guest's memory down is none of them. */
const copies = /^(qmconfig|qmcreate|qmclone|qmmove):/;

type Limits = Pick<Hypervisor["spec"], "slots" | "storages">;

/**
 * Law 6: no more goes on at once than the Hypervisor allows, on it, on each of its nodes, and in
 * copies onto a storage.
 */
export function demandSlots(
  where: string,
  work: readonly Work[],
  { limits, volumes }: { readonly limits: Limits; readonly volumes: ClusterState["volumes"] },
): void {
  if (work.length < 2) return;
  const { slots } = limits;
  demandAtMost(slots.hypervisor, work, where);
  for (const [node, there] of Map.groupBy(work, (one) => one.node)) {
    demandAtMost(slots.node, there, `${node} of ${where}`);
  }
  for (const [backing, found] of Object.entries(volumes)) {
    const filling = new Set(found.filter(({ isPartial }) => isPartial).map(({ vmid }) => vmid));
    if (filling.size < 2) continue;
    // A copy that was broken off leaves its volume as it is, and nobody at work on it.
    const copying = work.filter(({ name }) => {
      return copies.test(name) && filling.has(Number(name.split(":")[1]));
    });
    demandAtMost(slots.storage, copying, `${backing} of ${where}, where they copy`);
  }
}

/** A process of a cluster, and a task as the cluster remembers it. */
type ProcessOf = Work & { readonly pid: number };
type Task = ClusterState["nodes"][number]["tasks"][number];
type TaskOf = Pick<Task, "pid" | "user" | "endMs"> & Partial<Pick<Task, "type" | "startMs">>;

/** Until then a new leader waits for what may have become of a request. */
const knownMs = 62_000;

/**
 * The work of one user among processes: the others are requests that are being answered, guests,
 * and workers of the high availability manager. What nobody remembers counts no more, because
 * nobody can know of it; nor does an upload that takes minutes, because its task names no machine:
 * whoever began it may be dead. One machine's work counts once, as a restart and the start that it
 * makes, or the removal of a volume beside a request that arrived twice: the machine has one slot.
 */
export function workersOf(
  processes: readonly ProcessOf[],
  {
    tasks,
    user,
    nowMs,
  }: { readonly tasks: readonly TaskOf[]; readonly user: string; readonly nowMs: number },
): Work[] {
  const workers = processes.filter(({ name }) => /^\w+:/.test(name) && !name.startsWith("guest:"));
  if (workers.length < 2) return [...workers];
  const isLost = ({ type, startMs = nowMs }: TaskOf): boolean => {
    return type === "imgcopy" && nowMs - startMs > knownMs;
  };
  const own = tasks.filter((task) => {
    return task.user === user && task.endMs === undefined && !isLost(task);
  });
  const pids = new Set(own.map(({ pid }) => pid));
  // A clone bears the id of its source, of which there may be several.
  const keyOf = ({ name, pid }: ProcessOf): unknown => {
    return name.startsWith("qmclone:") ? pid : aboutOf(name);
  };
  const known = workers.filter(({ pid }) => pids.has(pid));
  return [...new Map(known.map((worker) => [keyOf(worker), worker])).values()];
}

/** What a task is about, by its name; that which removes a volume names its storage too. */
export function aboutOf(name: string): string {
  return /:(\d+(?=@)|[^:]*)/.exec(name)?.[1] ?? "";
}

function demandAtMost(most: number, work: readonly Work[], where: string): void {
  if (work.length <= most) return;
  const names = work.map(({ name }) => name).join(", ");
  throw new Violation(6, `${work.length} tasks where ${most} may be: ${names} on ${where}`);
}
