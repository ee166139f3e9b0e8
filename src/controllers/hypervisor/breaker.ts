import type {
  Answer,
  Begun,
  Failure,
  Fence,
  HypervisorDriver,
  Preflight,
  Seen,
  TaskHandle,
  TaskView,
} from "../../hypervisor/index.ts";
import type { Cancel, Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";

export interface BreakerOptions {
  readonly clock: Clock;
  /** Called when a call got no answer and nothing else was answered since it was made. */
  readonly doubt: () => void;
  /** Whether this run acts on the hypervisor. Absent: it does. */
  readonly mayAct?: () => boolean;
}

/**
 * So long an answer may take before somebody looks whether the hypervisor is there at all. Calls
 * that wait for a lock over there take longer; then one look says that all is well.
 */
const hangMs = 5_000;
/** Where so many wait at once, they all wait for the same thing: then it is looked at sooner. */
const crowd = 8;
const crowdMs = 200;

/**
 * The circuit breaker of one hypervisor. It passes every call on, and notices when answers stay
 * away: then nobody else asks before the one who looks after the hypervisor has had an answer. So a
 * dead one is asked by one probe at a time, however many machines are declared on it.
 *
 * One call that is lost while others are answered means nothing: a node or a proxy may be slow.
 */
export function guarded(driver: HypervisorDriver, options: BreakerOptions): HypervisorDriver {
  const watch = new AnswerWatch(options);
  const call = <T extends Reply>(make: () => Promise<T>): Promise<T> => watch.call(make);
  const fenced = (fence: Fence): Fence => actingFence(fence, options);
  const allocating = driver.allocating?.bind(driver);
  return {
    ...driver,
    observe: (claim, hints) => call(() => driver.observe(claim, hints)),
    propose: (avoid, first) => call(() => driver.propose(avoid, first)),
    preflight: (draft) => call(() => driver.preflight(draft)),
    begin: (operation, fence) => call(() => driver.begin(operation, fenced(fence))),
    look: (task) => call(() => driver.look(task)),
    recall: (claim, sinceMs, hints) => call(() => driver.recall(claim, sinceMs, hints)),
    leftovers: (claim) => call(() => driver.leftovers(claim)),
    survey: (known, suspects) => call(() => driver.survey(known, suspects)),
    images: (place) => call(() => driver.images(place)),
    discs: (place) => call(() => driver.discs(place)),
    ...(allocating && { allocating: (operation, id) => call(() => allocating(operation, id)) }),
    ...(driver.cancel && {
      cancel: async (task, fence) => cancelTask(driver, task, fenced(fence)),
    }),
    // A silent agent is the guest's affair: `guest` passes unwatched.
  };
}

/**
 * Every write of every controller passes here: where another run of this installation acts, nothing
 * leaves, whoever forgot to ask.
 */
function actingFence(fence: Fence, { mayAct = () => true }: BreakerOptions): Fence {
  return { mayWrite: () => guard("driver-acts", mayAct()) && fence.mayWrite() };
}

async function cancelTask(
  driver: HypervisorDriver,
  task: TaskHandle,
  fence: Fence,
): Promise<Begun> {
  return (await driver.cancel?.(task, fence)) ?? { outcome: "done" };
}

/** What calls are answered with, as far as it tells whether they were. */
type Reply = Answer<unknown> | Begun | Preflight | Seen | TaskView;

class AnswerWatch {
  readonly #options: BreakerOptions;
  #answeredMs = -1;
  #waiting = 0;
  #doubtedMs = Number.NEGATIVE_INFINITY;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  async call<T extends Reply>(make: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    const sinceMs = clock.monotonicMs();
    const cancel = this.#watch(sinceMs);
    this.#waiting += 1;
    try {
      const reply = await make();
      if (networkFailures(reply).length > 0) this.#unanswered(sinceMs);
      else this.#answeredMs = clock.monotonicMs();
      return reply;
    } finally {
      this.#waiting -= 1;
      cancel();
    }
  }

  #watch(sinceMs: number): Cancel {
    const { clock } = this.#options;
    let cancel = clock.after(crowdMs, () => {
      if (this.#isCrowded()) this.#unanswered(sinceMs);
      cancel = clock.after(hangMs - crowdMs, () => this.#unanswered(sinceMs));
    });
    return () => cancel();
  }

  /** A hypervisor that is only busy is not looked at again and again. */
  #isCrowded(): boolean {
    const isRested = this.#options.clock.monotonicMs() - this.#doubtedMs >= hangMs;
    return this.#waiting >= crowd && isRested;
  }

  #unanswered(sinceMs: number): void {
    if (this.#answeredMs >= sinceMs) return;
    this.#doubtedMs = this.#options.clock.monotonicMs();
    this.#options.doubt();
  }
}

function networkFailures(reply: Reply): Failure[] {
  const failures = "findings" in reply ? reply.findings : failureIn(reply);
  return failures.filter(({ category }) => category === "NetworkError");
}

function failureIn(reply: Exclude<Reply, Preflight>): Failure[] {
  return "failure" in reply && reply.failure !== undefined ? [reply.failure] : [];
}
