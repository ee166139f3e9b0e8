import type { Condition, KubeObject } from "../../kernel/object.ts";

/** What the statuses of our kinds have in common. */
export interface ObjectStatus {
  readonly conditions?: readonly Condition[];
  readonly hypervisor?: string;
  readonly failure?: { readonly category: string; readonly firstAt: string };
  readonly operation?: { readonly step: string; readonly since: string };
  readonly waitingFor?: { readonly kind: string };
}

export function statusOf({ status }: KubeObject): ObjectStatus {
  return status ?? {};
}

export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  return statusOf(object).conditions?.find((condition) => condition.type === type);
}

export function isTrue(object: KubeObject, type: string): boolean {
  return conditionOf(object, type)?.status === "True";
}
