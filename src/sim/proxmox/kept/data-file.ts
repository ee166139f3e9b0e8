import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { applyChange, type Change } from "./changes.ts";

/** A file whose journal is longer than it all, and than this, is written anew. */
const journalBytesMax = 1024 ** 2;

/**
 * Data with a journal behind it. The first line is the data as it once was, each further line a
 * list of changes of it. What was appended survives the end of this process, at whatever moment
 * that comes; nothing is done to survive a power loss of the machine itself.
 */
export class DataFile {
  readonly #path: string;
  #descriptor: number | undefined;
  #wholeBytes = 0;
  #journalBytes = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether changes may be appended: not before it was written, nor after an append failed. */
  get isAppendable(): boolean {
    const isShort = this.#journalBytes <= Math.max(this.#wholeBytes, journalBytesMax);
    return this.#descriptor !== undefined && isShort;
  }

  /** Writes all of it: beside, then renamed over the old one, so that there is always one. */
  write(data: object): void {
    this.close();
    const text = `${JSON.stringify(data)}\n`;
    const beside = `${this.#path}.new`;
    writeFileSync(beside, text, { mode: 0o600 });
    renameSync(beside, this.#path);
    this.#descriptor = openSync(this.#path, "a");
    this.#wholeBytes = text.length;
    this.#journalBytes = 0;
  }

  append(changes: readonly Change[]): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) throw new Error("changes of a file that was not written yet");
    const line = Buffer.from(`${JSON.stringify(changes)}\n`);
    try {
      for (let done = 0; done < line.length;) done += writeSync(descriptor, line, done);
    } catch (error) {
      // A part of the line may be there: whatever came behind it could not be read.
      this.close();
      throw error;
    }
    this.#journalBytes += line.length;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/**
 * The data of a file, with its journal applied to it; undefined where there is no file. The last
 * line is left out if it is torn: it was never acknowledged.
 */
export function readDataFile(path: string): object | undefined {
  if (!existsSync(path)) return undefined;
  const [first = "", ...journal] = readFileSync(path, "utf8").split("\n");
  // What ends behind the last newline is nothing, or torn.
  journal.pop();
  // cast: the file is what DataFile wrote.
  const data = JSON.parse(first) as object;
  for (const line of journal) {
    // cast: and so is each line of its journal.
    for (const change of JSON.parse(line) as Change[]) applyChange(data, change);
  }
  return data;
}
