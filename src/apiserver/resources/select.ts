import type { Resource } from "../../api/resource.ts";
import { assert } from "../../kernel/assert.ts";
import type { Entry, Store } from "../../store/store.ts";
import { bucketOf } from "../contract.ts";
import { decode } from "../objects/index.ts";
import type { Selection } from "./selection.ts";

export interface SelectQuery {
  readonly resource: Resource;
  readonly selection: Selection;
  /** Go on after this id. */
  readonly afterId?: string;
  /** At most so many; absent: all. */
  readonly limit?: number;
  /** As of this revision. Absent: now. */
  readonly atRevision?: number;
}

export interface Selected {
  readonly revision: number;
  readonly entries: readonly Entry[];
  /** How many are left; undefined where a selector makes that unknown. */
  readonly remaining: number | undefined;
  /** Whether there may be more. */
  readonly hasMore: boolean;
}

export class OutOfReach extends Error {
  override readonly name = "OutOfReach";
  readonly why: "compacted" | "future";

  constructor(why: "compacted" | "future") {
    super(`the revision is ${why}`);
    this.why = why;
  }
}

/** The selected entries in the order of their ids. Throws OutOfReach. */
export function selectEntries(store: Store, query: SelectQuery): Selected {
  const { selection, limit = Infinity } = query;
  if (selection.matches || selection.onlyId !== undefined) return selectMatching(store, query);
  const { entries, remaining, revision } = listStored(store, query, limit);
  return { revision, entries, remaining, hasMore: remaining > 0 };
}

function selectMatching(store: Store, query: SelectQuery): Selected {
  const { selection, limit = Infinity } = query;
  const { entries, revision } = listStored(store, query, Infinity);
  const found: Entry[] = [];
  for (const entry of entries) {
    if (!isSelected(entry, selection)) continue;
    // One more than wanted was found: only now is it known that there is more.
    if (found.length === limit)
      return { revision, entries: found, remaining: undefined, hasMore: true };
    found.push(entry);
  }
  return { revision, entries: found, remaining: undefined, hasMore: false };
}

/** Whether an entry under the selection's prefix is selected. */
export function isSelected(entry: Entry, { onlyId, matches }: Selection): boolean {
  if (onlyId !== undefined && entry.id !== onlyId) return false;
  return matches === undefined || matches(decode(entry));
}

function listStored(
  store: Store,
  query: SelectQuery,
  limit: number,
): { entries: readonly Entry[]; remaining: number; revision: number } {
  const { resource, selection, afterId, atRevision } = query;
  const result = store.list({
    bucket: bucketOf(resource),
    prefix: selection.onlyId ?? selection.prefix,
    ...(afterId === undefined ? {} : { afterId }),
    ...(limit === Infinity ? {} : { limit }),
    ...(atRevision === undefined ? {} : { atRevision }),
  });
  if (!result.ok) throw new OutOfReach(result.why);
  assert(
    atRevision === undefined || result.revision === atRevision,
    "a list is as of its revision",
  );
  return result;
}
