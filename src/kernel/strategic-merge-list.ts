import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { getMember } from "./json-member.ts";
import { badRequest } from "./status.ts";
import { cleaned, directive } from "./strategic-merge-directives.ts";

/** How one list is merged. */
export interface ListRules {
  /** The member that names an element; "" for a set of scalars. */
  readonly mergeKey: string;
  readonly path: string;
  readonly merge: (current: JsonObject, patch: JsonObject) => JsonObject;
}

/** Merges a patch list into the live one; the patch decides the order of what it names. */
export function mergeLists(
  live: readonly Json[],
  patch: readonly Json[],
  rules: ListRules,
): Json[] {
  for (const item of live) assertElement(item, rules);
  for (const item of patch) assertPatchElement(item, rules);
  const plain = patch.filter((item) => markerOf(item) === undefined || markerOf(item) === "merge");
  if (patch.some((item) => markerOf(item) === "replace")) return mergeElements([], plain, rules);
  const deleted = new Set(patch.filter((item) => markerOf(item) === "delete").map(identify));
  const kept = live.filter((item) => !deleted.has(identify(item)));
  return ordered(mergeElements(kept, plain, rules), { order: plain, live: kept }, rules);

  function identify(item: Json): string {
    return identityOf(item, rules) ?? "";
  }
}

/** Puts a merged list into the order of `$setElementOrder`; what is not named keeps its place. */
export function orderByDirective(
  lists: { merged: Json[]; live: readonly Json[]; patched: readonly Json[] },
  order: readonly Json[],
  rules: ListRules,
): Json[] {
  assertSameOrder(lists.patched, order, rules);
  return ordered(lists.merged, { order, live: lists.live }, rules);
}

function mergeElements(live: readonly Json[], patch: readonly Json[], rules: ListRules): Json[] {
  const merged = [...live];
  const positions = positionsOf(merged, rules);
  for (const item of patch) {
    const identity = identityOf(item, rules) ?? "";
    const position = positions.get(identity);
    const current = position === undefined ? undefined : merged[position];
    if (position === undefined) {
      positions.set(identity, merged.length);
      merged.push(cleaned(item) ?? null);
    } else if (isJsonObject(current) && isJsonObject(item)) {
      merged[position] = rules.merge(current, item);
    }
  }
  return merged;
}

/**
 * Two orders are known: the one that is asked for, of the elements it names, and the live one.
 * The first always holds; the others are put in before the first asked-for element that followed
 * them in the live list, so that both orders hold as far as they can.
 */
function ordered(
  merged: readonly Json[],
  orders: { order: readonly Json[]; live: readonly Json[] },
  rules: ListRules,
): Json[] {
  const asked = positionsOf(orders.order, rules);
  const live = positionsOf(orders.live, rules);
  const placeOf = (places: Map<string, number>, item: Json): number | undefined =>
    places.get(identityOf(item, rules) ?? "");
  const named = merged
    .filter((item) => placeOf(asked, item) !== undefined)
    .toSorted((left, right) => (placeOf(asked, left) ?? 0) - (placeOf(asked, right) ?? 0));
  const others = merged.filter((item) => placeOf(asked, item) === undefined);
  const result: Json[] = [];
  let next = 0;
  for (const item of named) {
    const place = placeOf(live, item) ?? -1;
    while (next < others.length && (placeOf(live, others[next] ?? null) ?? Infinity) < place) {
      result.push(others[next++] ?? null);
    }
    result.push(item);
  }
  return [...result, ...others.slice(next)];
}

/** The elements of the patch must come in the order that the directive gives. */
function assertSameOrder(patched: readonly Json[], order: readonly Json[], rules: ListRules): void {
  const places = positionsOf(order, rules);
  let last = -1;
  for (const item of patched) {
    if (markerOf(item) !== undefined) continue;
    const place = places.get(identityOf(item, rules) ?? "");
    if (place === undefined || place < last) {
      const shown = `The order in patch list: ${JSON.stringify(patched)}`;
      throw badRequest(`${shown} doesn't match ${directive.setElementOrder} list`);
    }
    last = place;
  }
}

/** The first position of every identity. */
function positionsOf(items: readonly Json[], rules: ListRules): Map<string, number> {
  const positions = new Map<string, number>();
  items.forEach((item, position) => {
    const identity = identityOf(item, rules);
    if (identity !== undefined && !positions.has(identity)) positions.set(identity, position);
  });
  return positions;
}

/** What tells an element apart; undefined for a live element that lost its merge key. */
function identityOf(item: Json, rules: ListRules): string | undefined {
  if (rules.mergeKey === "") return JSON.stringify(item);
  const key = isJsonObject(item) ? getMember(item, rules.mergeKey) : undefined;
  return key === undefined ? undefined : JSON.stringify(key);
}

function markerOf(item: Json): Json | undefined {
  return isJsonObject(item) ? getMember(item, directive.patch) : undefined;
}

function assertElement(item: Json, rules: ListRules): void {
  if (Array.isArray(item)) throw badRequest("lists of lists are not supported");
  if (isJsonObject(item) !== (rules.mergeKey !== "")) {
    throw badRequest(`list element types are not identical in ${rules.path}`);
  }
}

function assertPatchElement(item: Json, rules: ListRules): void {
  assertElement(item, rules);
  const marker = markerOf(item);
  if (marker === "replace" || rules.mergeKey === "") return;
  if (marker !== undefined && marker !== "merge" && marker !== "delete") {
    throw badRequest(`unknown patch type: ${JSON.stringify(marker)} in ${rules.path}`);
  }
  if (identityOf(item, rules) !== undefined) return;
  const shown = `map: ${JSON.stringify(item)}`;
  throw badRequest(`${shown} does not contain declared merge key: ${rules.mergeKey}`);
}
