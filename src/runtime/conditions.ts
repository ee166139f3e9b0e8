import type { ObjectClient } from "../client/index.ts";
import { assert } from "../kernel/assert.ts";
import { formatTime } from "../kernel/clock.ts";
import { isJsonObject, jsonEqual } from "../kernel/json.ts";
import type { Condition, KubeObject } from "../kernel/object.ts";
import { fitStatus } from "./fit-status.ts";

/** A condition without what follows from when and where it is set. */
export type ConditionState = Pick<Condition, "type" | "status" | "reason" | "message">;

/** When a condition is set, and for which generation of the declaration. */
export interface ConditionMoment {
  readonly nowMs: number;
  readonly observedGeneration?: number | undefined;
}

/**
 * The conditions with this one set. The time of transition changes only with the status; where
 * nothing changes, the very list that came in is returned. The order stays.
 */
export function setCondition(
  conditions: readonly Condition[],
  state: ConditionState,
  { nowMs, observedGeneration }: ConditionMoment,
): readonly Condition[] {
  assert(isReason(state.reason), `${state.reason} is a reason: one CamelCase word`);
  const old = conditions.find(({ type }) => type === state.type);
  const { type, status, reason, message } = state;
  const next: Condition = {
    type,
    status,
    reason,
    message,
    lastTransitionTime: old?.status === status ? old.lastTransitionTime : formatTime(nowMs),
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
  };
  if (old === undefined) return [...conditions, next];
  if (jsonEqual(old, next)) return conditions;
  return conditions.map((condition) => (condition === old ? next : condition));
}

/** The conditions without that one; the very list that came in where it is not among them. */
export function removeCondition(
  conditions: readonly Condition[],
  type: string,
): readonly Condition[] {
  if (!conditions.some((condition) => condition.type === type)) return conditions;
  return conditions.filter((condition) => condition.type !== type);
}

/** Whether two statuses say the same. A member that is undefined is not there. */
export function sameStatus(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) return Array.isArray(right) && sameLists(left, right);
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  let members = 0;
  for (const key of Object.keys(left)) {
    if (left[key] === undefined) continue;
    if (!Object.hasOwn(right, key) || !sameStatus(left[key], right[key])) return false;
    members++;
  }
  return members === Object.keys(right).filter((key) => right[key] !== undefined).length;
}

/**
 * Writes the status if it says something new, and never otherwise. Rejects with a conflict if the
 * object was changed since it was read.
 */
export async function writeStatus<Read extends KubeObject>(
  objects: Pick<ObjectClient<Read>, "updateStatus">,
  object: Read,
  status: Read["status"],
): Promise<Read> {
  assert(object.metadata.resourceVersion, "the status of an object that was read is written");
  const fitted = fitStatus(status);
  if (sameStatus(object["status"], fitted)) return object;
  return objects.updateStatus({ ...object, status: fitted });
}

function isReason(reason: string): boolean {
  return /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason);
}

/** In a list JSON writes null for what is undefined. */
function sameLists(left: readonly unknown[], right: readonly unknown[]): boolean {
  if (left.length !== right.length) return false;
  return left.every((item, index) => sameStatus(item ?? null, right[index] ?? null));
}
