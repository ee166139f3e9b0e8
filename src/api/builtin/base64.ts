/** The canonical text of some base64, or where it first goes wrong. */
export type Base64Check =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly offset: number };

/**
 * Reads base64 exactly as Go does, because kube-apiserver does: line breaks are skipped, padding is
 * demanded, unused bits at the end are ignored. What comes out is the canonical form, so that two
 * spellings of the same bytes are stored alike.
 */
export function checkBase64(text: string): Base64Check {
  const canonical = Buffer.from(text, "base64").toString("base64");
  if (canonical === text) return { ok: true, text };
  const offset = firstIllegalByte(Buffer.from(text, "utf8"));
  return offset === undefined ? { ok: true, text: canonical } : { ok: false, offset };
}

/** The bytes that some canonical base64 stands for, counted without decoding it. */
export function base64Bytes(text: string): number {
  return Buffer.byteLength(text, "base64");
}

const equalsSign = 0x3d;

/** The offset that Go's CorruptInputError names, or undefined where all is well. */
function firstIllegalByte(bytes: Uint8Array): number | undefined {
  let inQuantum = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (isLineBreak(byte)) continue;
    if (byte === equalsSign) return illegalPadding(bytes, at, inQuantum);
    if (!isAlphabet(byte)) return at;
    inQuantum = (inQuantum + 1) % 4;
  }
  // Go blames the place four characters would have filled, also where line breaks lie between.
  return inQuantum === 0 ? undefined : bytes.length - inQuantum;
}

/** Padding ends the text: one or two signs, as many as the last four characters lack. */
function illegalPadding(bytes: Uint8Array, first: number, inQuantum: number): number | undefined {
  if (inQuantum < 2) return first;
  let end = first + 1;
  if (inQuantum === 2) {
    const second = skipLineBreaks(bytes, end);
    if (second === bytes.length) return bytes.length;
    if (bytes[second] !== equalsSign) return second - 1;
    end = second + 1;
  }
  const rest = skipLineBreaks(bytes, end);
  return rest === bytes.length ? undefined : rest;
}

function skipLineBreaks(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && isLineBreak(bytes[at] ?? 0)) at++;
  return at;
}

function isLineBreak(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d;
}

function isAlphabet(byte: number): boolean {
  const letter = (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
  return letter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2f;
}
