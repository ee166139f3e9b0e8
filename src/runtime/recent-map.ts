/** A map of bounded size: what has not been used for longest makes room for what is new. */
export class RecentMap<Value> {
  readonly #sizeMax: number;
  readonly #values = new Map<string, Value>();

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  /** The value of a key, made if there is none. It is now the most recent. */
  of(key: string, make: () => Value): Value {
    const value = this.#values.get(key) ?? make();
    this.#values.delete(key);
    this.#values.set(key, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#sizeMax && oldest !== undefined) this.#values.delete(oldest);
    return value;
  }

  get size(): number {
    return this.#values.size;
  }
}
