import type { Terminal } from "./command.ts";

/** The process' own streams and signals. */
export function createTerminal({ isService }: { readonly isService: boolean }): Terminal {
  // A note that nobody can read is dropped; without a listener it would end the process.
  process.stderr.on("error", () => undefined);
  // A control plane whose log nobody reads, as in `berth up | tee`, still has VMs to look after.
  process.stdout.on("error", isService ? () => undefined : endUnread);
  return {
    print: (line) => process.stdout.write(`${line}\n`),
    note: (line) => process.stderr.write(`${line}\n`),
    get interrupted() {
      return whenInterrupted();
    },
    directory: process.cwd(),
  };
}

/** `berth crds | head` closes the pipe early: that is the reader's right, and no fault of ours. */
function endUnread(error: NodeJS.ErrnoException): never {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(`berth: the output cannot be written: ${error.message}\n`);
  process.exit(1);
}

/**
 * One Ctrl-C may arrive twice: the terminal sends it to the whole group, and npm hands its own on.
 * Only one that comes later than that is a person who does not want to wait.
 */
const sameSignalMs = 1_000;

/** The first signal asks for a clean stop; a second one does not wait for it. */
function whenInterrupted(): Promise<string> {
  return new Promise((resolve) => {
    let askedMs: number | undefined;
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        const nowMs = performance.now();
        if (askedMs !== undefined && nowMs - askedMs > sameSignalMs) process.exit(130);
        askedMs ??= nowMs;
        resolve(signal);
      });
    }
  });
}
