/** How a test ended; its name begins with the names of the groups that it is part of. */
export interface TestEnd {
  readonly name: string;
  readonly end: "passed" | "skipped" | "refuted" | "fell over";
}
