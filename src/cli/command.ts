/** One command of `berth`: plain data, so that help, completion and docs can be read off it. */
export interface Command {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What it does and what to know before running it: a short paragraph or two. */
  readonly description: string;
  /** How it is called, without the program's name: "backup FILE [--with-key]". */
  readonly usage: string;
  readonly options: Readonly<Record<string, Option>>;
  /**
   * Names of the arguments, in order. "FILE?" may be left out, "NAME..." takes the rest; one in
   * small letters is a choice of words: "bash|zsh|fish".
   */
  readonly arguments: readonly string[];
  readonly examples: readonly string[];
  /** Not for people: help and completion leave it out. */
  readonly hidden?: boolean;
  /** It has work to do whether or not anybody reads its output. */
  readonly isService?: boolean;
  /** Does the work and returns the exit code. Throws CommandError to refuse. */
  readonly run: (call: Call) => Promise<number>;
}

export interface Option {
  readonly type: "string" | "boolean" | "strings";
  readonly description: string;
  /** What stands for the value in help: "DIR". */
  readonly value?: string;
  readonly short?: string;
  readonly default?: string;
}

/** One invocation, parsed. */
export interface Call {
  readonly arguments: readonly string[];
  string(option: string): string | undefined;
  strings(option: string): readonly string[];
  flag(option: string): boolean;
  readonly terminal: Terminal;
}

/** The outside of a command: where it prints, and how it is told to stop. */
export interface Terminal {
  /** Results: standard output, a line each. */
  print(line: string): void;
  /** Notes and errors: standard error. */
  note(line: string): void;
  /** Resolves with the signal's name once the user or the system asks to stop. */
  readonly interrupted: Promise<string>;
  readonly directory: string;
}

/** The exit codes, part of the command line's contract. 2 and 3 are those of `berth plan`. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  /** Of a plan: applying it would change something. */
  changes: 2,
  /** Of a plan: something of it cannot be had. */
  refused: 3,
  /** The command line itself is wrong: as sysexits' EX_USAGE. */
  usage: 64,
} as const;

/** A refusal in one sentence: what, where, why, what to do. Printed without a stack trace. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "CommandError";
    this.exitCode = options.exitCode ?? exitCodes.failed;
  }
}

export function usageError(message: string): CommandError {
  return new CommandError(message, { exitCode: exitCodes.usage });
}
