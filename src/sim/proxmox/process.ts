import type { Cancel, Clock } from "../../kernel/clock.ts";
import { PveError } from "./errors.ts";
import { type LockRequest, LockTable } from "./locks.ts";

/**
 * One point between two effects of a process. Whatever is not done yet when a process stands at a
 * step is lost if it is killed there; whatever was done before stays.
 */
export type Step =
  /** Work that takes time and has no effect of its own. */
  | { readonly kind: "work"; readonly name: string; readonly durationMs: number }
  /** A child program: it goes on, and has its effect, even if its parent is killed. */
  | {
      readonly kind: "child";
      readonly name: string;
      readonly durationMs: number;
      readonly effect: () => void;
    }
  | { readonly kind: "lock"; readonly name: string; readonly lock: LockRequest }
  | { readonly kind: "unlock"; readonly name: string; readonly key: string }
  /** Something outside of the model answers, by calling back. */
  | {
      readonly kind: "wait";
      readonly name: string;
      readonly start: (resume: () => void) => void;
    };

/** A script of effects with step points between them. */
export type Process<T> = Generator<Step, T, void>;

export type Outcome<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "failed"; readonly error: unknown }
  /** It ended without a word: SIGKILL, or its node lost power. */
  | { readonly kind: "killed" };

/** What a fault may do to a process at a step. */
export type Verdict = { readonly kind: "kill" } | { readonly kind: "fail"; readonly error: Error };

export interface ProcessInfo {
  readonly pid: number;
  readonly node: string;
  /** "qmcreate:101", "PUT /nodes/{node}/qemu/{vmid}/config" … */
  readonly name: string;
  /** How many steps it has come. */
  readonly steps: number;
}

interface Running {
  pid: number;
  node: string;
  name: string;
  steps: number;
  /** How much a turn counts: nothing for a request that only reads. */
  effects: number;
  isOver: boolean;
  /** Counts resumptions, so that a late callback of an earlier step is told apart. */
  epoch: number;
  cancel: Cancel;
  /** The child that this process waits for, if it stands at one. */
  child: string | undefined;
  resume: (error?: Error) => void;
  end: (outcome: Outcome<never>) => void;
}

const nothing: Cancel = () => undefined;
/** How long a process may clean up after SIGTERM before SIGKILL follows. */
const terminationMs = 5_000;

/** The processes of all nodes. They advance on the clock, one step after the other. */
export class ProcessTable {
  readonly locks: LockTable;
  readonly #clock: Clock;
  readonly #running = new Map<number, Running>();
  /** Ended processes whose child goes on. */
  #orphans: Running[] = [];
  #verdict: (info: ProcessInfo, step: Step) => Verdict | undefined = () => undefined;
  /** How often anything ran that may have had an effect: all but the processes of GET requests. */
  effects = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.locks = new LockTable(clock);
  }

  /** Asks this before every step; a fault may answer. */
  watch(verdict: (info: ProcessInfo, step: Step) => Verdict | undefined): void {
    this.#verdict = verdict;
  }

  /** Whether nothing is under way that could still have an effect. */
  get isQuiet(): boolean {
    if (this.#orphans.length > 0) return false;
    for (const running of this.#running.values()) if (running.effects > 0) return false;
    return true;
  }

  list(): ProcessInfo[] {
    return [...this.#running.values()];
  }

  /** Starts a process. Its first effects, up to the first step that takes time, happen at once. */
  start<T>(options: {
    readonly pid: number;
    readonly node: string;
    readonly name: string;
    readonly body: Process<T>;
    readonly onEnd: (outcome: Outcome<T>) => void;
  }): void {
    const { pid, node, name, body, onEnd } = options;
    const running: Running = {
      pid,
      node,
      name,
      steps: 0,
      effects: name.startsWith("GET ") ? 0 : 1,
      isOver: false,
      epoch: 0,
      cancel: nothing,
      child: undefined,
      resume: (error) => {
        this.#advance(running, body, {
          error,
          onEnd,
        });
      },
      end: (outcome) => {
        this.#finish(running, () => onEnd(outcome));
      },
    };
    this.#running.set(pid, running);
    running.resume();
  }

  /** SIGKILL: it ends at once and cleans nothing up; only the kernel takes its flocks back. */
  kill(pid: number): boolean {
    const running = this.#running.get(pid);
    if (running === undefined) return false;
    this.#killNow(running);
    return true;
  }

  /** SIGTERM to its group: children die, the process cleans up if it can within five seconds. */
  terminate(pid: number): boolean {
    const running = this.#running.get(pid);
    if (running === undefined) return false;
    running.child = undefined;
    running.cancel();
    running.resume(new PveError("received interrupt"));
    this.#clock.after(terminationMs, () => this.kill(pid));
    return true;
  }

  /** The power fails: every process of the node is gone, and its children with it. */
  crash(node: string): void {
    for (const orphan of this.#orphans) if (orphan.node === node) orphan.cancel();
    this.#orphans = this.#orphans.filter((orphan) => orphan.node !== node);
    for (const running of this.#running.values()) {
      if (running.node !== node) continue;
      running.child = undefined;
      this.#killNow(running);
    }
  }

  #killNow(running: Running): void {
    // The kernel hands an orphan over to init: qemu-img goes on writing for a while.
    if (running.child === undefined) running.cancel();
    else this.#orphans.push(running);
    running.end({ kind: "killed" });
  }

  #finish(running: Running, report: () => void): void {
    if (running.isOver) return;
    running.isOver = true;
    running.epoch++;
    this.effects += running.effects;
    this.#running.delete(running.pid);
    this.locks.releaseAll(running.pid);
    report();
  }

  #advance<T>(
    running: Running,
    body: Process<T>,
    how: { readonly error: Error | undefined; readonly onEnd: (outcome: Outcome<T>) => void },
  ): void {
    let { error } = how;
    for (;;) {
      if (running.isOver) return;
      running.epoch++;
      running.child = undefined;
      running.cancel = nothing;
      this.effects += running.effects;
      const result = turn(body, error);
      error = undefined;
      if (result.kind !== "step") {
        this.#finish(running, () => how.onEnd(result));
        return;
      }
      const { step } = result;
      running.steps++;
      const verdict = this.#verdict(running, step);
      if (verdict?.kind === "kill") {
        if (step.kind === "child") this.#runChild(running, step, () => undefined);
        this.#killNow(running);
        return;
      }
      if (verdict?.kind === "fail") error = verdict.error;
      else if (!this.#isThrough(running, step)) return;
    }
  }

  /** Whether the step is over already; if not, it is arranged that the process goes on later. */
  #isThrough(running: Running, step: Step): boolean {
    const { epoch } = running;
    const resume = (error?: Error): void => {
      if (running.epoch === epoch) running.resume(error);
    };
    switch (step.kind) {
      case "work":
        if (step.durationMs <= 0) return true;
        running.cancel = this.#clock.after(step.durationMs, () => resume());
        return false;
      case "child":
        this.#runChild(running, step, resume);
        return false;
      case "lock":
        return this.locks.acquire({ ...step.lock, owner: running.pid, onAnswer: resume });
      case "unlock":
        this.locks.release(running.pid, step.key);
        return true;
      case "wait":
        step.start(() => resume());
        return false;
    }
  }

  #runChild(
    running: Running,
    step: Extract<Step, { kind: "child" }>,
    resume: (error?: Error) => void,
  ): void {
    running.child = step.name;
    running.cancel = this.#clock.after(step.durationMs, () => {
      running.child = undefined;
      this.#orphans = this.#orphans.filter((orphan) => orphan !== running);
      this.effects++;
      try {
        step.effect();
        resume();
      } catch (error) {
        resume(error instanceof Error ? error : new PveError(String(error)));
      }
    });
  }
}

type Turn<T> =
  | { readonly kind: "step"; readonly step: Step }
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "failed"; readonly error: unknown };

function turn<T>(body: Process<T>, error: Error | undefined): Turn<T> {
  try {
    const result = error === undefined ? body.next() : body.throw(error);
    if (result.done === true) return { kind: "done", value: result.value };
    return { kind: "step", step: result.value };
  } catch (thrown) {
    return { kind: "failed", error: thrown };
  }
}

/** Time passes, and nothing else happens. */
export function* work(name: string, durationMs = 0): Process<void> {
  yield { kind: "work", name, durationMs };
}

/** A child program does something; what it throws is the failure of this process. */
export function* child(name: string, durationMs: number, effect: () => void): Process<void> {
  yield { kind: "child", name, durationMs, effect };
}

/** Holds a lock while the body runs. A kill releases it too, for it is the kernel's. */
export function* locked<T>(lock: LockRequest, body: () => Process<T>): Process<T> {
  yield { kind: "lock", name: `lock ${lock.key}`, lock };
  try {
    return yield* body();
  } finally {
    yield { kind: "unlock", name: `unlock ${lock.key}`, key: lock.key };
  }
}

/** Waits for an answer from outside of the model. */
export function* external<T>(
  name: string,
  start: (resume: (value: T) => void) => void,
): Process<T> {
  const box: { value?: T } = {};
  yield {
    kind: "wait",
    name,
    start: (resume) =>
      start((value) => {
        box.value = value;
        resume();
      }),
  };
  if (!("value" in box) || box.value === undefined) throw new PveError(`${name}: no answer`);
  return box.value;
}
