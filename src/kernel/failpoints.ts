/**
 * Where a process can be told to die, for tests: before and after everything that outlives it. The
 * table is the whole list; whoever tests all of them walks through it.
 */
export const failpointTable = {
  "before-effect": "a request that changes something is about to go to a hypervisor",
  "after-effect": "the hypervisor has answered such a request, and nobody here knows it yet",
  "before-intent": "what is about to be done to a machine is not written in its status yet",
  "after-intent": "it is written, and nothing was done",
  "before-status": "a status of a VirtualMachine that opens no operation is about to be written",
  "after-status": "it is written",
  "before-claim-create": "an id was chosen and is not claimed yet",
  "after-claim-create": "it is claimed, and nothing else was done",
  "before-claim-update": "a Claim is about to be changed",
  "after-claim-update": "it is changed",
  "before-claim-delete": "the machine is gone, and its Claim is about to go",
  "after-claim-delete": "the Claim is gone, the object is not",
  "before-finalizer-add": "a VirtualMachine was seen for the first time",
  "after-finalizer-add": "it holds our finalizer, and nothing else was done",
  "before-finalizer-remove": "nothing is left of the machine, and the object is still there",
  "after-finalizer-remove": "the object is gone, and nobody here knows it yet",
  "before-lease": "the Lease of the controllers is about to be taken or renewed",
  "after-lease": "it is ours, and nobody here knows it yet",
  "before-append": "changes of objects are about to be handed to the disk",
  "after-append": "they are durable, and neither writers nor watchers know it yet",
  "before-flush": "changes are in SQLite's transaction, which is not committed",
  "after-flush": "the transaction is committed, and nobody knows it yet",
  "before-compact": "old changes are about to be removed from the disk",
  "after-compact": "they are removed, and nobody knows it yet",
  "before-checkpoint": "the write-ahead log is about to be carried over into the file",
  "after-checkpoint": "it is carried over",
} as const satisfies Record<string, string>;

export type FailpointName = keyof typeof failpointTable;

/**
 * What happens at a point.
 *
 * - `kill`: the process ends as by `kill -9`.
 * - `error`: what is about to be done fails, and what was done has no known outcome.
 * - `delay`: everything that waits for it waits longer.
 */
export type FailpointOrder =
  | { readonly do: "kill" }
  | { readonly do: "error" }
  | { readonly do: "delay"; readonly delayMs: number };

/** Plain data: it also goes to the thread that writes the disk. */
export interface ArmedFailpoint {
  readonly name: FailpointName;
  /** At which visit, counted from one. It strikes once. */
  readonly visit: number;
  readonly order: FailpointOrder;
}

const delayMsMax = 600_000;
const form = /^(?<name>[a-z-]+)(?:@(?<visit>[1-9]\d{0,5}))?(?:=(?<order>[a-z]+(?::\d{1,6})?))?$/;

/**
 * Reads `before-effect`, `after-flush@3`, `before-lease=delay:20000` or several of them with commas
 * between. Throws a sentence for people where it is none.
 */
export function parseFailpoints(text: string): ArmedFailpoint[] {
  const parts = text.split(",").map((part) => part.trim());
  return parts.filter((part) => part !== "").map(parseFailpoint);
}

/** What a thread of its own needs to arm its points: plain data. */
export interface FailpointSettings {
  readonly armed: readonly ArmedFailpoint[];
  /** Nothing strikes before this file is there: so a test chooses its moment. */
  readonly afterFile?: string;
}

/** Counts visits, and says what has to happen at each. */
export class Failpoints {
  readonly #armed: readonly ArmedFailpoint[];
  readonly #isOn: () => boolean;
  readonly #visits = new Map<FailpointName, number>();

  /** Visits are counted from the moment on that `isOn` says so. */
  constructor(armed: readonly ArmedFailpoint[], isOn: () => boolean = () => true) {
    this.#armed = armed;
    this.#isOn = isOn;
  }

  /** Undefined: nothing happens here. */
  visit(name: FailpointName): FailpointOrder | undefined {
    const point = this.#armed.find((candidate) => candidate.name === name);
    if (point === undefined || !this.#isOn()) return undefined;
    const count = (this.#visits.get(name) ?? 0) + 1;
    this.#visits.set(name, count);
    return count === point.visit ? point.order : undefined;
  }
}

function parseFailpoint(text: string): ArmedFailpoint {
  const { name = "", visit = "1", order = "kill" } = form.exec(text)?.groups ?? {};
  if (!isFailpointName(name)) {
    const known = Object.keys(failpointTable).join(", ");
    throw new Error(`there is no failpoint "${text}": use NAME[@N][=ORDER], NAME one of ${known}`);
  }
  return { name, visit: Number(visit), order: orderOf(order, text) };
}

function orderOf(order: string, text: string): FailpointOrder {
  if (order === "kill" || order === "error") return { do: order };
  const delayMs = Number(/^delay:(\d+)$/.exec(order)?.[1] ?? Number.NaN);
  if (delayMs <= delayMsMax) return { do: "delay", delayMs };
  const allowed = `kill, error or delay:MS, at most ${delayMsMax}`;
  throw new Error(`the failpoint "${text}" has no order that is known: use ${allowed}`);
}

function isFailpointName(name: string): name is FailpointName {
  return Object.hasOwn(failpointTable, name);
}
