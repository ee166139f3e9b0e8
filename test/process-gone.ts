import { existsSync, readFileSync } from "node:fs";

/** Waits until a process has ended; one that nobody has buried yet has ended too. */
export async function isGone(pid: number): Promise<boolean> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    if (!existsSync(`/proc/${pid}`)) return true;
    if (readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}
