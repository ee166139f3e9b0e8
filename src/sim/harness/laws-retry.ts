import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { Violation } from "./violation.ts";

/** What is tried again by itself waits so long, written down here once more on purpose. */
const retried: ReadonlySet<string> = new Set(["NodeUnhealthy", "NetworkError", "CreationFailed"]);
const delaysMs = [30_000, 60_000, 120_000, 300_000, 600_000] as const;
/** A wait may be a fifth shorter, and times are told in seconds. */
const least = 0.8;
const roundingMs = 1_000;

/** Failures of the same kind, one after the other, and what was declared meanwhile. */
interface Row {
  readonly kind: string;
  readonly lastAt: string;
  readonly count: number;
}

/**
 * Law 6: whoever fails waits before it tries again, and longer each time that the same failure
 * follows itself. What Berth counts may be more, because it remembers more; never less.
 */
export class Patience {
  readonly #rows = new Map<string, Row>();

  atChange({ metadata, status }: VirtualMachine): void {
    const { uid = "", name } = metadata;
    const { failure } = status ?? {};
    if (failure === undefined || !retried.has(failure.category)) {
      this.#rows.delete(uid);
      return;
    }
    const { category, step, lastAt, nextRetryAt } = failure;
    // A person's word, or another declaration, starts from the beginning.
    const word = metadata.annotations?.[annotations.reconcileAt];
    const kind = JSON.stringify([category, step, metadata.generation, word]);
    const row = this.#rows.get(uid);
    const isNew = row?.lastAt !== lastAt;
    const count = (row?.kind === kind ? row.count : 0) + (isNew ? 1 : 0);
    this.#rows.set(uid, { kind, lastAt, count });
    if (!isNew || nextRetryAt === undefined) return;
    const waitsMs = Date.parse(nextRetryAt) - Date.parse(lastAt);
    const delayMs = delaysMs[Math.min(count, delaysMs.length) - 1] ?? delaysMs[0];
    if (waitsMs >= delayMs * least - roundingMs) return;
    const what = `${name} fails with ${category} for the ${count}. time`;
    throw new Violation(6, `${what}, and waits ${waitsMs} ms where ${delayMs} are due`);
  }
}
