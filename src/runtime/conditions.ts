import type { ObjectClient } from "../client/index.ts";
import { assert } from "../kernel/assert.ts";
import { formatTime } from "../kernel/clock.ts";
import { jsonEqual } from "../kernel/json.ts";
import type { Condition, KubeObject } from "../kernel/object.ts";

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
  return jsonEqual(withoutUndefined(left), withoutUndefined(right));
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
  if (sameStatus(object["status"], status)) return object;
  return objects.updateStatus({ ...object, status });
}

function isReason(reason: string): boolean {
  return /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason);
}

function withoutUndefined(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
