/** A file of an archive. */
export interface ArchivedFile {
  /** With folders, in ASCII: at most 100 characters. */
  readonly path: string;
  readonly content: string;
}

const blockBytes = 512;

/** An archive in the form that every tar reads (POSIX ustar), uncompressed. Pure. */
export function tarOf(files: readonly ArchivedFile[], nowMs: number): Buffer {
  const parts = files.flatMap(({ path, content }) => {
    const bytes = Buffer.from(content);
    return [headerOf(path, bytes.length, nowMs), bytes, paddingOf(bytes.length)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]);
}

function headerOf(path: string, sizeBytes: number, nowMs: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const put = (text: string, at: number): void => void header.write(text, at, "ascii");
  put(path.slice(0, 100), 0);
  put(octal(0o600, 8), 100);
  put(octal(0, 8), 108);
  put(octal(0, 8), 116);
  put(octal(sizeBytes, 12), 124);
  put(octal(Math.floor(nowMs / 1000), 12), 136);
  put(" ".repeat(8), 148);
  put("0", 156);
  put("ustar\u000000", 257);
  // The sum is taken with spaces in its own place.
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${octal(sum, 7)} `, 148);
  return header;
}

/** A number with a zero byte after it, in so many bytes. */
function octal(value: number, bytes: number): string {
  return `${value.toString(8).padStart(bytes - 1, "0")}\u0000`;
}

function paddingOf(sizeBytes: number): Buffer {
  return Buffer.alloc((blockBytes - (sizeBytes % blockBytes)) % blockBytes);
}
