import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Need } from "../runner/suite.ts";

/** The Python library of that name, and what it needs to speak HTTPS. */
export const proxmoxer: Need = {
  name: "proxmoxer",
  missing: () => {
    if (findPython() !== undefined) return undefined;
    return "no python3 in PATH or /usr/bin has the modules proxmoxer and requests";
  },
  provide: async () => {
    apt("update");
    apt("install", "-y", "--no-install-recommends", "python3-proxmoxer", "python3-requests");
  },
};

/** Debian's package; who is not root needs sudo for it. */
function apt(...args: string[]): void {
  const command = ["apt-get", "-q", ...args];
  const [program = "", ...rest] = process.getuid?.() === 0 ? command : ["sudo", "-n", ...command];
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync(program, rest, { env, stdio: ["ignore", "ignore", "inherit"] });
}

/** A python3 that has the library; the first in PATH is often not the system's. */
export function findPython(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/bin"];
  const pythons = new Set(folders.map((folder) => join(folder, "python3")));
  return [...pythons].filter((path) => existsSync(path)).find(hasProxmoxer);
}

function hasProxmoxer(python: string): boolean {
  try {
    execFileSync(python, ["-c", "import proxmoxer, requests"], { stdio: "ignore" });
    return true;
  } catch {
    return false; // Another Python, without them.
  }
}
