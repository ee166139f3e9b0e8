import { assert } from "../../kernel/assert.ts";
import { guard } from "../../kernel/guard.ts";
import { limits } from "../../kernel/limits.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { tooLarge } from "../../kernel/status.ts";
import type { Decision, Entry, Key, Store } from "../../store/store.ts";
import { decode, encode } from "../objects/index.ts";
import { storeRefusal } from "./errors.ts";
import type { Item } from "./shape.ts";

/** What a write makes of an object. For `delete` the object is its last state. */
export interface Verdict {
  readonly do: "put" | "delete" | "keep";
  readonly object: KubeObject;
}

export interface Written {
  /** What stands now, or for a deletion what stood last. */
  readonly item: Item;
  readonly do: Verdict["do"];
}

export interface WriteTarget {
  readonly store: Store;
  readonly key: Key;
  /** Everything is decided and checked as if, and nothing is stored. */
  readonly dryRun: boolean;
}

/**
 * Decides on the newest state of one object and stores what was decided. `decide` gets a frozen
 * object, and may refuse by throwing. Resolves when it is durable.
 */
export async function writeObject(
  target: WriteTarget,
  decide: (current: KubeObject | undefined) => Verdict,
): Promise<Written> {
  const { store, key, dryRun } = target;
  if (!guard("no-dry-run", !dryRun)) return tryWrite(store.get(key), decide);
  let done: Verdict["do"] = "keep";
  try {
    const { entry } = await store.write(key, (current) => {
      const verdict = decide(current && decode(current));
      done = verdict.do;
      return decisionOf(verdict);
    });
    assert(entry, "a write of an object leaves an entry, or is refused");
    return { item: itemOf(entry), do: done };
  } catch (error) {
    throw storeRefusal(error);
  }
}

export function itemOf(entry: Entry): Item {
  return { bytes: entry.value, object: () => decode(entry) };
}

/** An object that is in no store: the answer of a dry run, or a Scale. */
export function looseItem(object: KubeObject): Item {
  return { bytes: Buffer.from(JSON.stringify(object)), object: () => object };
}

function tryWrite(
  entry: Entry | undefined,
  decide: (current: KubeObject | undefined) => Verdict,
): Written {
  const verdict = decide(entry && decode(entry));
  const item = looseItem(verdict.object);
  assertSize(item.bytes);
  return { item, do: verdict.do };
}

function decisionOf({ do: action, object }: Verdict): Decision {
  if (action === "keep") return { do: "keep" };
  return { do: action, encode: (revision) => assertSize(encode(object, revision)) };
}

/** Thrown while encoding, it refuses the write: the store has taken nothing yet. */
function assertSize(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength <= limits.objectBytes) return bytes;
  throw tooLarge(`Request entity too large: limit is ${limits.objectBytes}`);
}
