/**
 * States what must hold if the program is right. It stays on in production: going on after a
 * broken assumption is how a control plane destroys the wrong machine.
 */
export function assert(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${sentence}`);
}

/** Marks the branch of an exhaustive switch that no value can reach. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: no branch for ${JSON.stringify(value)}`);
}
