import type { Begun, Failure } from "../../../hypervisor/index.ts";
import { causeOf, classifyError, failureOf } from "../errors.ts";
import type { PveResult } from "../wire/api.ts";

/** What a reply to a write means. A text is a task's name; anything else was done at once. */
export function begunOf(result: PveResult, attempted: string): Begun {
  switch (result.type) {
    case "data":
      return typeof result.data === "string" && result.data.startsWith("UPID:")
        ? { outcome: "task", task: result.data }
        : { outcome: "done" };
    case "lost":
      return { outcome: "unknown", failure: failureOf(result, attempted) };
    case "notSent":
      if (result.why === "fenced") return { outcome: "fenced" };
      return { outcome: "refused", failure: failureOf(result, attempted) };
    case "error":
      break;
  }
  const { meaning } = classifyError(result);
  if (meaning === "changed" || meaning === "notHere") {
    return { outcome: "changed", detail: causeOf(result) };
  }
  if (meaning === "blocked") return { outcome: "blocked", waitsFor: causeOf(result) };
  if (meaning === "alreadySo") return { outcome: "done" };
  return { outcome: "refused", failure: failureOf(result, attempted) };
}

export function refused(failure: Failure): Begun {
  return { outcome: "refused", failure };
}

/** Another volume or file has the name by now: nothing is destroyed. */
export function replaced(volume: string): Begun {
  return { outcome: "changed", detail: `${volume} is not the one that was decided about` };
}
