import { spawn } from "node:child_process";
import { join } from "node:path";
import { repository, running } from "./berth.ts";

/** A real `berth controller` in a process of its own: one replica. */
export interface Replica {
  /** Everything that it printed so far. */
  output(): string;
  /** Resolves with the exit code, or the signal's name. */
  readonly exited: Promise<number | string>;
  /** Whether a Lease's holder is this one. */
  holds(holderIdentity: string): boolean;
  /** `kill -9`: resolves once the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM: resolves with the exit code. */
  stop(): Promise<number | string>;
}

export function startReplica(kubeconfig: string): Replica {
  const program = join(repository, "bin", "berth");
  const args = [program, "controller", "--kubeconfig", kubeconfig];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  let printed = "";
  const onOutput = (chunk: Buffer): void => {
    printed += chunk.toString();
  };
  child.stdout.on("data", onOutput);
  child.stderr.on("data", onOutput);
  const exited = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve(code ?? signal ?? "unknown");
    });
  });
  const end = async (signal: "SIGKILL" | "SIGTERM"): Promise<number | string> => {
    child.kill(signal);
    return await exited;
  };
  return {
    output: () => printed,
    exited,
    // The holder is the identity that it logs when it begins to lead, and something unique.
    holds: (holder) => printed.includes(`leads identity=${holder.split("_")[0] || "nobody"}`),
    kill: async () => {
      await end("SIGKILL");
    },
    stop: () => end("SIGTERM"),
  };
}
