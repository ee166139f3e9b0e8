import { appendFileSync, renameSync, statSync } from "node:fs";

/** What a log file may grow to before it is put aside; the one before it is then forgotten. */
const fileBytesMax = 1024 * 1024;

/**
 * Writes lines into a private file of bounded size, so that the last ones can be shown when
 * somebody asks for help. Losing lines is no failure: with a full disk there is none to be told.
 */
export function createLogFile(path: string): (line: string) => void {
  let bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return (line) => {
    const text = `${line}\n`;
    try {
      if (bytes > fileBytesMax) {
        renameSync(path, `${path}.1`);
        bytes = 0;
      }
      appendFileSync(path, text, { mode: 0o600 });
      bytes += Buffer.byteLength(text);
    } catch {
      // The terminal has the line too, and nothing else can be done about a disk that refuses.
    }
  };
}
