import type { KubeObject } from "../../kernel/object.ts";
import { isTrue } from "./object-status.ts";

/** Adds up our own time for each machine that is being made, and tells it when it is Ready. */
export interface MakingTime {
  /** A run for this key took so much time of our own, and this is the object after it. */
  spent(key: string, ownMs: number, object: KubeObject | undefined): void;
}

/**
 * Only machines that were declared since are counted: what an earlier process spent on the others
 * is not known.
 */
export function createMakingTime(sinceMs: number, tell: (ownMs: number) => void): MakingTime {
  const spentMs = new Map<string, number>();
  const told = new Set<string>();
  const forget = (key: string): void => {
    spentMs.delete(key);
    told.delete(key);
  };
  return {
    spent: (key, ownMs, object) => {
      if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
        return forget(key);
      }
      // Times in the API are whole seconds, rounded down.
      const isNew = Date.parse(object.metadata.creationTimestamp ?? "") >= sinceMs - 999;
      if (!isNew || told.has(key)) return;
      const totalMs = (spentMs.get(key) ?? 0) + ownMs;
      spentMs.set(key, totalMs);
      if (!isTrue(object, "Ready")) return;
      spentMs.delete(key);
      told.add(key);
      tell(totalMs);
    },
  };
}
