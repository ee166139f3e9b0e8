/**
 * pvedaemon's workers: each blocks until its call is done, and there are few. Calls that find none
 * free wait.
 */
export class Workers {
  readonly #free: Map<string, number> = new Map();
  readonly #waiting: Map<string, (() => void)[]> = new Map();
  readonly #count: number;

  constructor(count: number) {
    this.#count = count;
  }

  /** Calls `begin` as soon as a worker of the node is free; `release` must follow once. */
  acquire(node: string, begin: () => void): void {
    const free = this.#free.get(node) ?? this.#count;
    if (free === 0) {
      this.#waiting.set(node, [...(this.#waiting.get(node) ?? []), begin]);
      return;
    }
    this.#free.set(node, free - 1);
    begin();
  }

  release(node: string): void {
    const next = this.#waiting.get(node)?.shift();
    if (next !== undefined) next();
    else this.#free.set(node, (this.#free.get(node) ?? 0) + 1);
  }

  /** The node lost power: whoever waited is not served any more. */
  reset(node: string): void {
    this.#free.delete(node);
    this.#waiting.delete(node);
  }
}
