import { isJsonObject } from "../../kernel/json.ts";
import type { Condition, KubeObject } from "../../kernel/object.ts";

/** What the statuses of our kinds have in common. */
export interface ObjectStatus {
  readonly conditions?: readonly Condition[];
  readonly hypervisor?: string;
  readonly failure?: { readonly category: string; readonly firstAt: string };
  readonly operation?: { readonly step: string; readonly since: string };
  readonly waitingFor?: { readonly kind: string; readonly since: string };
}

export function statusOf({ status }: KubeObject): ObjectStatus {
  return status ?? {};
}

/** The Hypervisor that an object is on, or is declared for, where it is one. */
export function hypervisorOf(object: KubeObject): string | undefined {
  if (object.kind === "Hypervisor") return object.metadata.name;
  const declared = hypervisorRef(object["spec"]);
  return statusOf(object).hypervisor ?? declared ?? hypervisorRef(sourceOf(object));
}

/** A volume or a template is on one Hypervisor. */
function sourceOf({ spec }: KubeObject): unknown {
  const source = isJsonObject(spec) ? spec["source"] : undefined;
  return isJsonObject(source) ? (source["volume"] ?? source["template"]) : undefined;
}

function hypervisorRef(of: unknown): string | undefined {
  const ref = isJsonObject(of) ? of["hypervisorRef"] : undefined;
  const name = isJsonObject(ref) ? ref["name"] : undefined;
  return typeof name === "string" ? name : undefined;
}

export function conditionOf(object: KubeObject, type: string): Condition | undefined {
  return statusOf(object).conditions?.find((condition) => condition.type === type);
}

export function isTrue(object: KubeObject, type: string): boolean {
  return conditionOf(object, type)?.status === "True";
}
