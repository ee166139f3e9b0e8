/** A named set of checks. `scripts/suites.ts` is the table of them all. */
export interface Suite {
  name: string;
  /** What holds if it passes, as half a sentence after "proves that". */
  proves: string;
  work: Work;
  /** How long it may take on a small machine; it is stopped at `patience` times this. */
  minutes: number;
  /** Part of `npm run check`. */
  fast?: boolean;
  /** Only where real components are required, or when it is asked for by its name. */
  long?: boolean;
  needs?: readonly Need[];
  /** The variable with a number that is chosen at random where it is not set, and told. */
  random?: string;
}

export type Work =
  /** One program: passes if it exits with 0. */
  | { kind: "command"; command: readonly string[] }
  /**
   * Test files, as glob patterns. "shared" puts many of them into few processes, which is fast;
   * "alone" gives each file a process of its own, one after the other; "beside" does so with as
   * many at a time as there are processors.
   */
  | { kind: "tests"; files: readonly string[]; processes: "shared" | "alone" | "beside" };

/** Something that a machine may lack. */
export interface Need {
  name: string;
  /** Why the suite cannot run here, or nothing if it can. */
  missing(): string | undefined;
  /** Brings it about where real components are required. Throws if it cannot. */
  provide?(): Promise<void>;
}

export interface SuiteResult {
  passed: number;
  failures: Failure[];
  skips: Skip[];
}

export interface Failure {
  /** Where: "src/x.test.ts:12", or the command. */
  place: string;
  name: string;
  detail: string;
}

export interface Skip {
  name: string;
  reason: string;
}

/** A suite over its budget is only told; over this many times its budget it is stopped. */
export const patience = 3;
