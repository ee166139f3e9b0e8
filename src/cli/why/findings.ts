import { berthKinds, sharedReasons } from "../../api/index.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { apiVersionOf, type KubeObject } from "../../kernel/object.ts";
import { conditionsOf } from "../objects/expectation.ts";
import { adviceOn, hintOn } from "./hints.ts";
import { textOf } from "../objects/text.ts";

/** One thing that is the matter with an object, and what can be done. */
export interface Finding {
  readonly reason: string;
  readonly message: string;
  /** Further facts, a line or more each: the hypervisor's own words, how often, since when. */
  readonly details: readonly string[];
  readonly advice: readonly string[];
  /** The hypervisor's own words, by which a cause is known again in what follows from it. */
  readonly cause?: string | undefined;
  /** It is so only because of what something deeper was found with. */
  readonly follows?: boolean;
}

/** Everything that is the matter with an object by its own status; empty where all is well. */
export function findingsOf(object: KubeObject): Finding[] {
  const failure = failureOf(object);
  const amiss = conditionsOf(object).filter(isAmiss);
  // These repeat the failure, or follow from it: it is told once, in full.
  const others =
    failure === undefined ? amiss : amiss.filter(({ type }) => !summaries.includes(textOf(type)));
  return [
    ...(failure === undefined ? [] : [failure]),
    ...withoutRepeats(others.map(conditionFinding)),
    ...observationFindings(object),
  ];
}

/** Conditions that say how it stands as a whole. */
const summaries = ["Ready", "Synced", "Provisioned", "Reachable", "Reconciling", "Stalled"];

/** Conditions that nothing waits for, or that follow what was declared. */
const harmless = ["AgentReady", "Running", "Swept"];
/** Conditions whose being true is what is amiss, or is at least worth telling. */
const negative = ["Stalled", "Reconciling", "ChecksumUnverified", "InUse"];

function isAmiss(condition: Record<string, unknown>): boolean {
  const type = textOf(condition["type"]);
  if (harmless.includes(type)) return false;
  return (condition["status"] === "True") === negative.includes(type);
}

function conditionFinding(condition: Record<string, unknown>): Finding {
  const reason = textOf(condition["reason"]);
  const hint = hintOn(reason);
  return {
    reason,
    message: textOf(condition["message"]) || reason,
    details: [
      `condition ${textOf(condition["type"])} is ${textOf(condition["status"])}` +
        ` since ${textOf(condition["lastTransitionTime"] ?? "an unknown time")}`,
    ],
    advice: hint === undefined ? [] : [hint],
  };
}

function withoutRepeats(findings: readonly Finding[]): Finding[] {
  const seen = new Map<string, Finding>();
  for (const finding of findings) {
    const key = `${finding.reason}\n${finding.message}`;
    const known = seen.get(key);
    const details = [...(known?.details ?? []), ...finding.details];
    seen.set(key, { ...finding, details });
  }
  return [...seen.values()];
}

function failureOf(object: KubeObject): Finding | undefined {
  const failure = statusOf(object)["failure"];
  if (!isJsonObject(failure)) return undefined;
  const category = textOf(failure["category"]);
  const { cause, step, remedy } = failure;
  const exact = exactReason(object, category);
  const advice = adviceOn(category);
  return {
    reason: exact === undefined ? category : `${exact} (${category})`,
    message: textOf(failure["message"]),
    ...(typeof cause === "string" ? { cause } : {}),
    details: [
      ...(typeof cause === "string" ? [`in its own words: ${textOf(cause)}`] : []),
      ...(typeof step === "string" ? [`at the step ${textOf(step)}`] : []),
      ...attemptsLine(failure),
      ...(advice === undefined || exact !== undefined ? [] : [advice.meaning]),
    ],
    advice: [
      ...adviceLines(remedy, advice?.hint),
      ...(advice === undefined ? [] : [`More about it: ${advice.page}`]),
    ],
  };
}

/** A word of the kind's own, such as SystemClaimedTwice, says more than the category. */
function exactReason(object: KubeObject, category: string): string | undefined {
  const ready = conditionsOf(object).find(({ type }) => type === "Ready");
  const reason = textOf(ready?.["reason"] ?? "");
  const isExact = reason !== "" && reason !== category && !(reason in sharedReasons);
  return isExact && ready?.["status"] !== "True" ? reason : undefined;
}

function attemptsLine(failure: JsonObject): string[] {
  const { attempts, firstAt, lastAt } = failure;
  if (typeof attempts !== "number") return [];
  if (attempts === 1) return [`once, at ${textOf(lastAt)}`];
  return [`${attempts} times, first at ${textOf(firstAt)}, last at ${textOf(lastAt)}`];
}

/** A status that is missing or old explains why nothing else is to be seen. */
function observationFindings(object: KubeObject): Finding[] {
  const { generation } = object.metadata;
  const observed = statusOf(object)["observedGeneration"];
  if (conditionsOf(object).length === 0 && hasController(object)) {
    return [
      notSeen(
        "no controller has reported on it yet",
        "Check that berth up, or berth controller, is running.",
      ),
    ];
  }
  if (typeof observed !== "number" || generation === undefined || observed >= generation) return [];
  const message = `its status speaks of generation ${observed}, and ${generation} is declared`;
  return [notSeen(message, "Wait a moment; if it stays so, its controller does not run.")];
}

/** Kinds of ours that record failures have a controller; the others just are. */
function hasController({ kind, apiVersion }: KubeObject): boolean {
  const found = berthKinds.find((known) => {
    return known.kind === kind && apiVersion === apiVersionOf(known.group, known.version);
  });
  return found?.schema.properties?.["status"]?.properties?.["failure"] !== undefined;
}

function notSeen(message: string, hint: string): Finding {
  return { reason: "NotObserved", message, details: [], advice: [hint] };
}

export function statusOf(object: KubeObject): JsonObject {
  const status: unknown = object["status"];
  return isJsonObject(status) ? status : {};
}

/** What the failure itself says is better than what is said of all of its kind. */
function adviceLines(remedy: unknown, hint: string | undefined): string[] {
  if (typeof remedy === "string") return [textOf(remedy)];
  return hint === undefined ? [] : [hint];
}
