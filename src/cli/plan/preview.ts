import type { VirtualMachine } from "../../api/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { objectDifferences, planOf } from "./differences.ts";
import { machineProspect } from "./machine-prospect.ts";
import type { Planning, Prospect } from "./prospect.ts";

/** The prospect of one document that the server would admit. */
export async function prospectOf(planning: Planning): Promise<Prospect> {
  const { after } = planning;
  if (after.kind !== "VirtualMachine") return plainProspect(planning);
  try {
    // cast: the server admitted it by the schema of this kind.
    return await machineProspect(planning, after as unknown as VirtualMachine);
  } catch (error) {
    // Who may write an object may not be allowed to read what it refers to.
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    return { how: "unknown", why: error.message };
  }
}

/** What is no machine is compared as it is written; nothing is claimed of what that costs. */
function plainProspect({ before, after }: Planning): Prospect {
  if (before === undefined) return { how: "created" };
  const changes = objectDifferences(before, after);
  if (changes.length === 0) return { how: "unchanged" };
  return { how: "changed", plan: planOf(changes) };
}
