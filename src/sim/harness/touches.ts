/** In place of an id: anything may have been meant. */
const everyId = "";

/** How often somebody's hands were at a cluster. */
export class Touches {
  readonly #times = new Map<string, number>();

  /** They were at these ids; at none of them: at anything. */
  note(ids: readonly string[]): void {
    for (const id of ids.length > 0 ? ids : [everyId]) {
      this.#times.set(id, (this.#times.get(id) ?? 0) + 1);
    }
  }

  /** At what has this id, or at anything. */
  at(id: string): number {
    return (this.#times.get(id) ?? 0) + (this.#times.get(everyId) ?? 0);
  }
}
