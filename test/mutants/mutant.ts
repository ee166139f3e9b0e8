/** One change of the code. */
export interface Edit {
  readonly file: string;
  /** The line as it is; it must occur once, so that a change of the code is noticed here. */
  readonly find: string;
  readonly replace: string;
}

/**
 * A safety line that is no guard, broken on purpose. A test that names the damage must notice, or a
 * simulated run: lines.json says which. Where one line is behind another, both are broken, also
 * guards (src/kernel/guard.ts): each alone is caught by the other. Each guard by itself is broken
 * too, without an entry here: what notices that is in guards.json.
 */
export interface Mutant {
  readonly name: string;
  /** Tests do not count: it shows that the simulated runs notice something at all. */
  readonly inHistories?: true;
  /** The step of a history that is likely to show it: a search tries only seeds that have it. */
  readonly step?: string;
  /** Guards that are broken, by their ids. */
  readonly guards?: readonly string[];
  readonly edits: readonly Edit[];
}
