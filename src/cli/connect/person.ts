import { createInterface } from "node:readline/promises";
import { CommandError } from "../command.ts";

/** Whoever sits at the terminal, if anybody does. Tests pass their own. */
export interface Person {
  readonly isPresent: boolean;
  /** A line, without the spaces around it. */
  ask(question: string): Promise<string>;
  /** A line that is not shown while it is typed. */
  askSecretly(question: string): Promise<string>;
}

/** Questions go to standard error: standard output is for results. */
export const systemPerson: Person = {
  isPresent: process.stdin.isTTY && process.stderr.isTTY,
  ask: async (question) => {
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    const closed = new Promise<never>((_, reject) => lines.once("close", () => reject(gone())));
    try {
      return (await Promise.race([lines.question(question), closed])).trim();
    } catch (error) {
      // The cursor still stands behind the question.
      process.stderr.write("\n");
      throw error;
    } finally {
      closed.catch(() => undefined);
      lines.close();
    }
  },
  askSecretly: (question) => {
    process.stderr.write(question);
    return readHidden(process.stdin);
  },
};

function gone(): CommandError {
  return new CommandError("stopped: nothing was written", { exitCode: 130 });
}

/** Reads a line with the echo off. Ctrl-C and Ctrl-D end the command, as they would elsewhere. */
function readHidden(input: NodeJS.ReadStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let typed = "";
    const end = (settle: () => void): void => {
      input.off("data", onData);
      input.setRawMode(false);
      input.pause();
      process.stderr.write("\n");
      settle();
    };
    const onData = (chunk: Buffer): void => {
      for (const letter of chunk.toString("utf8")) {
        if (letter === "\r" || letter === "\n") return end(() => resolve(typed.trim()));
        if (letter === "\u0003" || letter === "\u0004") return end(() => reject(gone()));
        if (letter === "\u007f" || letter === "\b") typed = typed.slice(0, -1);
        else typed += letter;
      }
    };
    input.setRawMode(true);
    input.resume();
    input.on("data", onData);
  });
}
