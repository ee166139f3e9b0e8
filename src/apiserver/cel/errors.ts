/** A rule that is not CEL, or not well typed. The message has cel-go's form, with the place. */
export class CelCompileError extends Error {
  constructor(source: string, offset: number, sentence: string) {
    super(locate(source, offset, sentence));
    this.name = "CelCompileError";
  }
}

/** An expression that came to no value: "no such key: x", "division by zero". */
export class CelError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "CelError";
  }
}

/** The expression did too much. Unlike other errors, it cannot be absorbed by `||` and `&&`. */
export class CelCostError extends Error {
  constructor() {
    super("operation cancelled: actual cost limit exceeded");
    this.name = "CelCostError";
  }
}

export function noSuchOverload(): CelError {
  return new CelError("no such overload");
}

function locate(source: string, offset: number, sentence: string): string {
  const before = source.slice(0, offset);
  const line = before.split("\n").length;
  const start = before.lastIndexOf("\n") + 1;
  const column = Array.from(before.slice(start)).length;
  const text = source.slice(start).split("\n")[0] ?? "";
  const pointer = `${".".repeat(column)}^`;
  return `ERROR: <input>:${line}:${column + 1}: ${sentence}\n | ${text}\n | ${pointer}`;
}
