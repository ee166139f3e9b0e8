import type { ProcessInfo, Step, Verdict } from "./process.ts";

/** What a test or the simulation wants to go wrong with the next requests that match. */
export interface RequestFault {
  readonly matches: (request: { readonly method: string; readonly path: string }) => boolean;
  readonly kind:
    /** It is done, but the reply never arrives. */
    | "loseReply"
    /** It never arrives. */
    | "loseRequest"
    /** The worker of the reply cannot be forked: "got no worker upid". */
    | "noWorker"
    | "delay";
  readonly delayMs?: number;
  /** How many requests it hits; one if nothing is said. */
  readonly times?: number;
}

/** What goes wrong with a process, at one of its steps. */
export interface StepFault {
  readonly matches: (info: ProcessInfo, step: Step) => boolean;
  readonly verdict: Verdict;
  readonly times?: number;
}

/** The faults that are asked for, in order; each is used up by what it hits. */
export class FaultBook {
  hasNoQuorum = false;
  /** Storages, by backing, that cannot be reached: a server that is down, a pool that is gone. */
  readonly offline = new Set<string>();
  readonly #requests: (RequestFault & { left: number })[] = [];
  readonly #steps: (StepFault & { left: number })[] = [];

  onRequest(fault: RequestFault): void {
    this.#requests.push({ ...fault, left: fault.times ?? 1 });
  }

  onStep(fault: StepFault): void {
    this.#steps.push({ ...fault, left: fault.times ?? 1 });
  }

  clear(): void {
    this.#requests.length = 0;
    this.#steps.length = 0;
    this.hasNoQuorum = false;
    this.offline.clear();
  }

  /** The fault of a request, if one is due; it is used up. */
  takeRequest(request: { method: string; path: string }): RequestFault | undefined {
    const found = this.#requests.find(({ left, matches }) => left > 0 && matches(request));
    if (found !== undefined) found.left--;
    return found;
  }

  verdict(info: ProcessInfo, step: Step): Verdict | undefined {
    const found = this.#steps.find(({ left, matches }) => left > 0 && matches(info, step));
    if (found === undefined) return undefined;
    found.left--;
    return found.verdict;
  }
}
