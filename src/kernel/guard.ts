/**
 * Marks a guard: a comparison, fence, completeness or identity check that comes before an effect or
 * a write of the ledger. Returns its condition and does nothing else.
 *
 * Polarity: `holds` is what must be true for the effect to go on. Where it is false, the caller
 * stops, waits, or leaves the item out. So a broken guard is one that is always true.
 *
 * The suite `mutants` breaks each guard by its id (`guard("id", …)` becomes `true`) and expects a
 * test or a simulated run to fail then: test/mutants/guards.json names it. The id is a literal,
 * kebab-case, and used once.
 */
export function guard(_id: string, holds: boolean): boolean {
  return holds;
}

/**
 * Marks a precondition that goes along with a request: a digest, a uid, a resourceVersion. Returns
 * it, to be spread into the request: `{ ...precondition("id", { digest }) }`, or into a list of
 * tests. A broken one is left out: `precondition("id", …)` becomes `[]`.
 */
export function precondition<T extends object>(_id: string, fields: T): T {
  return fields;
}
