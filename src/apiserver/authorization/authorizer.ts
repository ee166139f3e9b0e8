import type { User } from "../contract.ts";

/**
 * What somebody wants to do, as far as it matters to whether they may. "*" as a verb, group or
 * resource asks for all of them at once, as `kubectl auth can-i '*' '*'` does.
 */
export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string | undefined;
  /** Absent for kinds without a namespace, and for lists over all namespaces. */
  readonly namespace: string | undefined;
  /** A list over all namespaces of a kind that has them. It only makes a refusal clearer. */
  readonly allNamespaces?: boolean;
  readonly name: string | undefined;
}

/** A refusal may carry a sentence for the person, beyond that nothing allows it. */
export type Verdict =
  | { readonly allowed: true; readonly reason: string }
  | { readonly allowed: false; readonly reason?: string };

/**
 * Judges requests for objects. Pure and synchronous: it is asked on every request. Several can be
 * put behind one another with `anyOf`; what none of them allows is refused.
 */
export interface Authorizer {
  authorize(user: User, attributes: Attributes): Verdict;
}

/** Allows what any of them allows. The first sentence that explains a refusal is kept. */
export function anyOf(authorizers: readonly Authorizer[]): Authorizer {
  return {
    authorize: (user, attributes) => {
      let refusal: Verdict = { allowed: false };
      for (const authorizer of authorizers) {
        const verdict = authorizer.authorize(user, attributes);
        if (verdict.allowed) return verdict;
        if (refusal.reason === undefined) refusal = verdict;
      }
      return refusal;
    },
  };
}
