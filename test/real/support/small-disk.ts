import { execFileSync } from "node:child_process";
import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";

/**
 * A small file system of its own: the only honest way to run out of space. Returns why there can be
 * none, if so.
 */
export function mountSmall(path: string, megabytes: number): string | undefined {
  if (process.platform !== "linux") return "needs Linux's tmpfs";
  if (process.getuid?.() !== 0) return "mounting a small file system needs root";
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=700`, "tmpfs", path]);
    return undefined;
  } catch (error) {
    return `cannot mount a tmpfs here: ${error instanceof Error ? error.message : "?"}`;
  }
}

export function unmount(path: string): void {
  execFileSync("umount", ["-l", path]);
}

/** From now on nothing can be written there, or it can again. */
export function remount(path: string, mode: "ro" | "rw"): void {
  execFileSync("mount", ["-o", `remount,${mode}`, path]);
}

/** Takes all of the space but so much, or all that is left if others are faster. */
export function fill(filler: string, folder: string, leftBytes: number): void {
  if (existsSync(filler)) rmSync(filler);
  const { bavail, bsize } = statfsSync(folder);
  try {
    writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - leftBytes)));
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ENOSPC") throw error;
  }
}
