import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { Violation } from "./violation.ts";

/** What is tried again by itself waits so long, written down here once more on purpose. */
const retried: ReadonlySet<string> = new Set(["NodeUnhealthy", "NetworkError", "CreationFailed"]);
const delaysMs = [30_000, 60_000, 120_000, 300_000, 600_000] as const;
/** A wait may be a fifth shorter, and times are told in seconds. */
const least = 0.8;
const roundingMs = 1_000;

type Failure = NonNullable<NonNullable<VirtualMachine["status"]>["failure"]>;

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

  atChange(vm: VirtualMachine): void {
    const { uid = "", name } = vm.metadata;
    const failure = vm.status?.failure;
    const row = this.#rows.get(uid);
    if (failure === undefined || !retried.has(failure.category)) {
      this.#rows.delete(uid);
      return;
    }
    const next = rowAfter(row, failure, declarationOf(vm));
    this.#rows.set(uid, next);
    if (row?.lastAt !== next.lastAt) demandWait(`${name}`, failure, next.count);
  }
}

/** A person's word, or another declaration, starts from the beginning. */
function declarationOf({ metadata }: VirtualMachine): string {
  return `${metadata.generation} ${metadata.annotations?.[annotations.reconcileAt]}`;
}

function rowAfter(row: Row | undefined, failure: Failure, declaration: string): Row {
  const { category, step, lastAt } = failure;
  const kind = `${category} ${step} ${declaration}`;
  const before = row?.kind === kind ? row.count : 0;
  return { kind, lastAt, count: before + (row?.lastAt === lastAt ? 0 : 1) };
}

function demandWait(name: string, { category, lastAt, nextRetryAt }: Failure, count: number): void {
  if (nextRetryAt === undefined) return;
  const waitsMs = Date.parse(nextRetryAt) - Date.parse(lastAt);
  const delayMs = delaysMs[Math.min(count, delaysMs.length) - 1] ?? delaysMs[0];
  if (waitsMs >= delayMs * least - roundingMs) return;
  const what = `${name} fails with ${category} for the ${count}. time`;
  throw new Violation(6, `${what}, and waits ${waitsMs} ms where ${delayMs} are due`);
}
