import type { Change, Key, Store } from "../../store/index.ts";
import { Violation } from "./violation.ts";

/** What an object was when somebody was last told of it. */
interface Told extends Key {
  readonly revision: number;
  readonly isGone: boolean;
}

/** Revisions only grow, no write is built on an old state, and a crash takes nothing back. */
export class OrderLaws {
  #revision = 0;
  readonly #told = new Map<string, Told>();

  /** At every change that the store tells of. */
  atChange({ type, bucket, entry, previous }: Change): void {
    const { id, revision } = entry;
    const what = `${bucket} ${id} at revision ${revision}`;
    if (revision <= this.#revision) {
      throw new Violation("order", `${what} was told after revision ${this.#revision}`);
    }
    this.#revision = revision;
    const key = `${bucket} ${id}`;
    const before = this.#told.get(key);
    this.#told.set(key, { bucket, id, revision, isGone: type === "delete" });
    // What nobody was told of before the last crash is not known here.
    if (before === undefined || before.isGone || before.revision === previous?.revision) return;
    if ((previous?.revision ?? 0) > before.revision) return;
    throw new Violation("order", `${what} is not built on revision ${before.revision}`);
  }

  /** When the API was started on its disk: whatever anybody was told of is on it. */
  atStore(store: Pick<Store, "revision" | "get">): void {
    const revision = store.revision();
    if (revision < this.#revision) {
      throw new Violation("order", `after a crash ${revision} follows revision ${this.#revision}`);
    }
    for (const told of this.#told.values()) this.#demandKept(told, store);
    this.#revision = revision;
  }

  #demandKept(told: Told, store: Pick<Store, "revision" | "get">): void {
    const found = store.get(told)?.revision;
    // A write that nobody heard of may have reached the disk: it counts, and its number is higher.
    const hasMore = store.revision() > this.#revision;
    const isKept = told.isGone ? found === undefined : found === told.revision;
    const isLater = found === undefined ? hasMore && !told.isGone : found > told.revision;
    if (isKept || isLater) return;
    const what = `${told.bucket} ${told.id} of revision ${told.revision}`;
    throw new Violation("order", `after a crash ${what} is ${found ?? "gone"}`);
  }
}
