import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TextFile } from "./project.ts";

/** Every text file that Git tracks, or would if it were added. */
export function readRepository(folder: string): TextFile[] {
  const list = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const names = execFileSync("git", list, { cwd: folder, encoding: "utf8" }).split("\0");
  return names
    .filter((name) => name !== "" && existsSync(join(folder, name)))
    .map((name) => ({ path: name, text: readFileSync(join(folder, name), "utf8") }))
    .filter(({ text }) => !text.includes("\0"));
}
