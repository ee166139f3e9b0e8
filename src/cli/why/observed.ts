import type { KubeObject } from "../../kernel/object.ts";
import { conditionsOf } from "../objects/expectation.ts";

const observedReasons: readonly unknown[] = ["Superseded", "PlaceChanged"];

/** Whether a Hypervisor says that this installation only observes it. */
export function isOnlyObserved(object: KubeObject): boolean {
  if (object.kind !== "Hypervisor") return false;
  const ready = conditionsOf(object).find(({ type }) => type === "Ready");
  return observedReasons.includes(ready?.["reason"]);
}
