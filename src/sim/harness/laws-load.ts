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
 * copies onto a storage. Only Berth has workers begun in a history.
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

/** The workers among processes: the others are requests that are being answered, and guests. */
export function workersOf(processes: readonly Work[]): Work[] {
  return processes.filter(({ name }) => !name.includes("/") && !name.startsWith("guest:"));
}

function demandAtMost(most: number, work: readonly Work[], where: string): void {
  if (work.length <= most) return;
  const names = work.map(({ name }) => name).join(", ");
  throw new Violation(6, `${work.length} tasks where ${most} may be: ${names} on ${where}`);
}
