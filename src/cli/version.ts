import { readFileSync } from "node:fs";

/** The version in package.json, which lies two folders up both in src/cli and in dist/cli. */
export function version(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === "object" && parsed !== null && "version" in parsed) {
    return String(parsed.version);
  }
  return "unknown";
}
