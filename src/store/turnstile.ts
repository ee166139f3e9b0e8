/** Lets one task through at a time, in the order in which they came. */
export class Turnstile {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    // The next in line goes on whatever became of this one; its caller has the result.
    this.#last = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }
}
