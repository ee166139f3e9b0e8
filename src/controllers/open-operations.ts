import type { Orphan, VirtualMachine } from "../api/index.ts";
import { objectKey } from "../kernel/object.ts";
import type { Ground } from "./ground.ts";
import type { Session } from "./hypervisor/index.ts";
import type { Informers, WrittenKinds } from "./informers.ts";
import {
  holders,
  OperationMemory,
  TaskPace,
  type OpenHolder,
  type OpenOperations,
  type OperationDeps,
} from "./operations/index.ts";
import type { Reports } from "./reports/index.ts";
import { openCopies } from "./vm-image/index.ts";

type Sessions = ReadonlyMap<string, Session>;

/** What all controllers of one term share that perform operations. */
export function operationDeps(
  { options, slots, mayWrite, informers }: Ground,
  written: WrittenKinds,
  { reports, sessions }: { readonly reports: Reports; readonly sessions: Sessions },
): OperationDeps {
  const { clock, random } = options;
  return {
    clock,
    random,
    slots,
    reports,
    pace: new TaskPace(),
    memory: new OperationMemory(),
    fence: { mayWrite },
    openOperations: openOperations(informers, written),
    epochOf: (name) => {
      const standing = sessions.get(name)?.epoch?.standing;
      return standing?.is === "acting" ? standing.number : undefined;
    },
  };
}

/**
 * Lists the open operations of all objects of all kinds, once all of them are known. Those of
 * objects that were written or read since count as they were then: a watch may be late, and what it
 * does not tell yet has its slots all the same.
 */
function openOperations(
  informers: Pick<Informers, "vms" | "images" | "orphans">,
  { vms, images, orphans }: Pick<WrittenKinds, "vms" | "images" | "orphans">,
): OpenOperations {
  let areListed = false;
  const waiting = new Map<string, () => void>();
  const all = Promise.all([
    informers.vms.synced,
    informers.images.synced,
    informers.orphans.synced,
  ]);
  all.then(
    () => {
      areListed = true;
      for (const wake of waiting.values()) wake();
      waiting.clear();
    },
    // The term ended before: nothing begins any more.
    () => undefined,
  );
  return {
    list: () => {
      if (!areListed) return undefined;
      return [
        ...vms.list().flatMap(ofVm),
        ...images.list().flatMap(openCopies),
        ...orphans.list().flatMap(ofOrphan),
      ];
    },
    whenListed: (holder, wake) => waiting.set(holder, wake),
  };
}

function ofVm({ metadata, status }: VirtualMachine): OpenHolder[] {
  const record = status?.operation;
  return record === undefined ? [] : [{ holder: objectKey(metadata), record }];
}

function ofOrphan({ metadata, status }: Orphan): OpenHolder[] {
  const record = status?.operation;
  return record === undefined ? [] : [{ holder: holders.orphan(objectKey(metadata)), record }];
}
