import { createHash } from "node:crypto";
import type { Hypervisor } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";

/** How long a hypervisor that refuses is left alone. */
export const stalledMs = 10 * 60_000;

/** What a connection was tried with. */
interface Tried {
  readonly createdFrom: string;
  /** The request of a person that was last heard. */
  readonly asked?: string | undefined;
}

/** Another try with the same waits for its time. */
export function triedWith(tried: Tried | undefined): string | undefined {
  if (tried === undefined) return undefined;
  const { createdFrom, asked = "" } = tried;
  return createHash("sha256").update(`${createdFrom}\n${asked}`).digest("hex").slice(0, 16);
}

/** How often in a row it failed, and when it is tried again. */
interface LastFailure {
  readonly troubles: number;
  readonly retryAtMs: number;
}

/**
 * How often it failed and when it is tried again, as the status says it: a process that has
 * forgotten it neither counts anew nor asks sooner. One that has just begun asks at once, and so
 * does one with another endpoint, Secret or request of a person.
 */
export function lastFailure({ status }: Hypervisor, tried: Tried, beganMs: number): LastFailure {
  const { failure } = status ?? {};
  const isSame = failure?.declaration === triedWith(tried);
  if (failure === undefined || !isSame) return { troubles: 0, retryAtMs: 0 };
  const { attempts, category, lastAt, nextRetryAt } = failure;
  const lastMs = Date.parse(lastAt) || 0;
  // A status has whole seconds.
  if (lastMs < Math.floor(beganMs / 1000) * 1000) return { troubles: 0, retryAtMs: 0 };
  const isRefused = categoryPolicies[category].next === "stall";
  const untimedMs = isRefused ? lastMs + stalledMs : 0;
  return { troubles: attempts, retryAtMs: Date.parse(nextRetryAt ?? "") || untimedMs };
}
