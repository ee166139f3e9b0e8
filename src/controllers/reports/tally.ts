import type { Gauge, Labels } from "../../runtime/index.ts";

/**
 * What a gauge is going to say: counted or compared first, set at once. A series that nothing
 * stands for any more disappears.
 */
export class Tally<Label extends string> {
  readonly #gauge: Gauge<Label>;
  readonly #values = new Map<string, { readonly labels: Labels<Label>; value: number }>();

  constructor(gauge: Gauge<Label>) {
    this.#gauge = gauge;
  }

  add(labels: Labels<Label>, amount = 1): void {
    this.#of(labels, 0).value += amount;
  }

  /** Keeps the largest. */
  raise(labels: Labels<Label>, value: number): void {
    const kept = this.#of(labels, value);
    kept.value = Math.max(kept.value, value);
  }

  show(): void {
    this.#gauge.clear();
    for (const { labels, value } of this.#values.values()) this.#gauge.set(labels, value);
  }

  #of(labels: Labels<Label>, first: number): { value: number } {
    const key = JSON.stringify(labels);
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const made = { labels, value: first };
    this.#values.set(key, made);
    return made;
  }
}
