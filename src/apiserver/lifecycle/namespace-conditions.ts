import { formatTime } from "../../kernel/clock.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";

/** What is left in a namespace that is going away. */
export interface RemainingContent {
  /** "configmaps." or "virtualmachines.berth.dev", and how many there are. */
  readonly resources: ReadonlyMap<string, number>;
  /** The finalizers that keep them, and how many objects each keeps. */
  readonly finalizers: ReadonlyMap<string, number>;
}

/**
 * A copy of the Namespace that says what remains, in Kubernetes' words; undefined where it already
 * says just that.
 */
export function withContentConditions(
  namespace: KubeObject,
  remaining: RemainingContent,
  nowMs: number,
): KubeObject | undefined {
  const status = isJsonObject(namespace["status"]) ? namespace["status"] : {};
  const listed = Array.isArray(status["conditions"]) ? status["conditions"] : [];
  const current = listed.filter(isJsonObject);
  const wanted = wantedConditions(remaining);
  if (wanted.every((condition) => current.some((known) => saysTheSame(known, condition)))) {
    return undefined;
  }
  const conditions = wanted.map((condition) => ({
    ...condition,
    lastTransitionTime: transitionTime(current, condition, nowMs),
  }));
  const others = current.filter((known) => !wanted.some(({ type }) => type === known["type"]));
  return { ...namespace, status: { ...status, conditions: [...others, ...conditions] } };
}

interface WantedCondition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

function wantedConditions({ resources, finalizers }: RemainingContent): WantedCondition[] {
  return [
    fine(
      "NamespaceDeletionDiscoveryFailure",
      "ResourcesDiscovered",
      "All resources successfully discovered",
    ),
    fine(
      "NamespaceDeletionGroupVersionParsingFailure",
      "ParsedGroupVersions",
      "All legacy kube types successfully parsed",
    ),
    fine(
      "NamespaceDeletionContentFailure",
      "ContentDeleted",
      "All content successfully deleted, may be waiting on finalization",
    ),
    resources.size === 0
      ? fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed")
      : {
          type: "NamespaceContentRemaining",
          status: "True",
          reason: "SomeResourcesRemain",
          message: `Some resources are remaining: ${counted(resources, "has")}`,
        },
    finalizers.size === 0
      ? fine(
          "NamespaceFinalizersRemaining",
          "ContentHasNoFinalizers",
          "All content-preserving finalizers finished",
        )
      : {
          type: "NamespaceFinalizersRemaining",
          status: "True",
          reason: "SomeFinalizersRemain",
          message: `Some content in the namespace has finalizers remaining: ${counted(finalizers, "in")}`,
        },
  ];
}

function fine(type: string, reason: string, message: string): WantedCondition {
  return { type, status: "False", reason, message };
}

function counted(counts: ReadonlyMap<string, number>, verb: string): string {
  return [...counts]
    .map(([name, count]) => `${name} ${verb} ${count} resource instances`)
    .toSorted()
    .join(", ");
}

function saysTheSame(known: JsonObject, wanted: WantedCondition): boolean {
  return (["type", "status", "reason", "message"] as const).every(
    (member) => known[member] === wanted[member],
  );
}

function transitionTime(current: JsonObject[], wanted: WantedCondition, nowMs: number): Json {
  const known = current.find(({ type }) => type === wanted.type);
  const isSame = known?.["status"] === wanted.status;
  return (isSame ? known["lastTransitionTime"] : undefined) ?? formatTime(nowMs);
}
