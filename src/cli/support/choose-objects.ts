import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";

/** Objects of one kind in a bundle. With ten thousand machines a sample is as good as all. */
const objectsMax = 2_000;
/** Characters of one kind in a bundle, which is to fit into a letter to somebody who helps. */
const charactersMax = 8 * 1024 * 1024;

/**
 * As many as a bundle holds: first those with which something is the matter, then those that
 * something happened to last; otherwise in the order in which they came. Pure.
 */
export function chooseObjects(objects: readonly JsonObject[]): JsonObject[] {
  const chosen: JsonObject[] = [];
  let characters = 0;
  for (const object of objects.toSorted(byUrgency).slice(0, objectsMax)) {
    characters += JSON.stringify(object).length;
    if (characters > charactersMax) break;
    chosen.push(object);
  }
  return chosen;
}

function byUrgency(a: JsonObject, b: JsonObject): number {
  return Number(isAmiss(b)) - Number(isAmiss(a)) || timeOf(b) - timeOf(a);
}

function isAmiss({ metadata, status, type }: JsonObject): boolean {
  const { failure, operation, conditions } = mapOf(status);
  const isUnfinished = failure !== undefined || operation !== undefined;
  const isDeleted = mapOf(metadata)["deletionTimestamp"] !== undefined;
  return isUnfinished || isDeleted || type === "Warning" || !areGood(conditions);
}

/** Those that say how an object stands as a whole. */
const summaries = ["Ready", "Synced"];

function areGood(conditions: Json | undefined): boolean {
  const all = Array.isArray(conditions) ? conditions.map(mapOf) : [];
  return all.every(({ type, status }) => {
    return !summaries.some((summary) => summary === type) || status === "True";
  });
}

/** When an Event was seen last; all else is as old as the rest. */
function timeOf({ lastTimestamp, eventTime, series }: JsonObject): number {
  const last = mapOf(series)["lastObservedTime"] ?? lastTimestamp ?? eventTime;
  const ms = typeof last === "string" ? Date.parse(last) : 0;
  return Number.isNaN(ms) ? 0 : ms;
}

function mapOf(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}
