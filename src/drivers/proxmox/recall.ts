import { failed } from "../../hypervisor/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { pastTasks, recallDownloads, recallTasks } from "./tasks.ts";
import { spanOfTask } from "./task-span.ts";
import { recallUploads } from "./uploads.ts";

/** What our own token did to a VM or a file and when, and who else worked on a VM. */
export function memoryOfTasks(
  context: DriverContext,
): Required<Pick<HypervisorDriver, "recall" | "history" | "span">> {
  const { user } = context;
  return {
    recall: async (target, sinceMs, hints = {}) => {
      const about = { sinceMs, user };
      if ("fileName" in target) {
        const recall = hints.does === "Upload" ? recallUploads : recallDownloads;
        return recall(context, { ...target, ...about });
      }
      const { externalId, node } = target;
      return node === undefined
        ? noNode(externalId)
        : recallTasks(context, { externalId, node, ...about, ...hints });
    },
    span: (task, node) => spanOfTask(context, task, node),
    history: async ({ externalId, node }, sinceMs, hints) => {
      return node === undefined
        ? noNode(externalId)
        : pastTasks(context, { externalId, node, sinceMs, user }, hints);
    },
  };
}

function noNode(externalId: string): ReturnType<typeof failed> {
  return failed({ category: "DependencyNotReady", message: `no node is known for ${externalId}` });
}
