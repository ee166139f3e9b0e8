import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Need } from "../runner/suite.ts";
import { toolFolder } from "./go.ts";

/** Prometheus' own checker of rules. */
export const promtool: Need = {
  name: "promtool",
  missing: () => {
    return findPromtool() === undefined
      ? `there is no promtool in PATH or in ${toolFolder} (Debian has it in the package prometheus)`
      : undefined;
  },
  provide: async () => unpackPromtool(),
};

export function findPromtool(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), toolFolder];
  return folders.map((folder) => join(folder, "promtool")).find((path) => existsSync(path));
}

/** Taken out of Debian's package: to install that would start a server, which nobody asked for. */
function unpackPromtool(): void {
  const folder = mkdtempSync(join(tmpdir(), "berth-promtool-"));
  const run = (program: string, ...args: string[]): void => {
    const stdio = ["ignore", "ignore", "inherit"] as const;
    execFileSync(program, args, { cwd: folder, stdio: [...stdio] });
  };
  try {
    const [first = "", ...update] = asRoot("apt-get", "-q", "update");
    run(first, ...update);
    run("apt-get", "-q", "download", "prometheus");
    const found = readdirSync(folder).find((name) => name.endsWith(".deb"));
    if (found === undefined) throw new Error("apt-get brought no package prometheus");
    run("dpkg-deb", "-x", found, "unpacked");
    mkdirSync(toolFolder, { recursive: true });
    copyFileSync(join(folder, "unpacked", "usr", "bin", "promtool"), join(toolFolder, "promtool"));
    chmodSync(join(toolFolder, "promtool"), 0o755);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Who is not root needs sudo for apt's lists. */
function asRoot(...command: string[]): string[] {
  return process.getuid?.() === 0 ? command : ["sudo", "-n", ...command];
}
