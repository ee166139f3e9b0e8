import type { Terminal } from "./command.ts";

/** The process' own streams and signals. */
export function createTerminal(): Terminal {
  // `berth crds | head` closes the pipe early: that is the reader's right, and no fault of ours.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  return {
    print: (line) => process.stdout.write(`${line}\n`),
    note: (line) => process.stderr.write(`${line}\n`),
    get interrupted() {
      return whenInterrupted();
    },
    directory: process.cwd(),
  };
}

/** The first signal asks for a clean stop; the second one does not wait for it. */
function whenInterrupted(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130);
        asked = true;
        resolve(signal);
      });
    }
  });
}
