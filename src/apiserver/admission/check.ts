import type { Previous } from "./correlate.ts";
import type { Issue } from "./issue.ts";

/**
 * Checks a value against one schema and adds what is wrong, with fields relative to the value.
 * Returns how many checks were passed: of several alternatives that all fail, Kubernetes explains
 * the one that came furthest.
 */
export type Check = (value: unknown, previous: Previous | undefined, issues: Issue[]) => number;
