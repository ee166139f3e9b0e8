import type { Clock } from "../../kernel/clock.ts";

/** What happened, for people. It costs nothing while nobody listens. */
export class Trace {
  readonly #clock: Clock;
  readonly #listen: ((line: string) => void) | undefined;
  events = 0;

  constructor(clock: Clock, listen: ((line: string) => void) | undefined) {
    this.#clock = clock;
    this.#listen = listen;
  }

  /** One event. The text is made only if somebody listens. */
  say(who: string, what: () => string): void {
    this.events += 1;
    this.#listen?.(`${timeOf(this.#clock)}  ${who.padEnd(10)}  ${what()}`);
  }
}

function timeOf(clock: Clock): string {
  return `${(clock.monotonicMs() / 1000).toFixed(3).padStart(9)} s`;
}
