import { createCipheriv, createDecipheriv } from "node:crypto";
import { assert } from "../kernel/assert.ts";
import type { Random } from "../kernel/random.ts";

/** Encrypts values so that they can be read only with the key, and only in their own place. */
export interface Cipher {
  /** `place` is bound to the result: it opens under the same place only. */
  seal(plain: Uint8Array, place: string): Uint8Array;
  /** Undefined if it was not sealed with this key for this place. */
  open(sealed: Uint8Array, place: string): Uint8Array | undefined;
}

export const cipherKeyBytes = 32;

const algorithm = "aes-256-gcm";
/** First byte of everything sealed: the layout, so that a later one can be told apart. */
const layout = 1;
/** 96 bits, the length that GCM is made for. Random ones suffice for 2^32 values of a key. */
const nonceBytes = 12;
const tagBytes = 16;

/** The layout of a sealed value: one byte for the layout, the nonce, the ciphertext, the tag. */
export function createCipher(key: Uint8Array, random: Random): Cipher {
  assert(key.byteLength === cipherKeyBytes, `a cipher key has ${cipherKeyBytes} bytes`);
  return {
    seal: (plain, place) => seal({ key, nonce: random.bytes(nonceBytes), place }, plain),
    open: (sealed, place) => open(key, sealed, place),
  };
}

interface SealOptions {
  readonly key: Uint8Array;
  readonly nonce: Uint8Array;
  readonly place: string;
}

function seal({ key, nonce, place }: SealOptions, plain: Uint8Array): Uint8Array {
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  cipher.setAAD(Buffer.from(place));
  const body = [cipher.update(plain), cipher.final(), cipher.getAuthTag()];
  return wholeOf([Uint8Array.of(layout), nonce, ...body]);
}

function open(key: Uint8Array, sealed: Uint8Array, place: string): Uint8Array | undefined {
  if (sealed[0] !== layout || sealed.byteLength < 1 + nonceBytes + tagBytes) return undefined;
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(sealed.subarray(-tagBytes));
  const plain = decipher.update(sealed.subarray(1 + nonceBytes, -tagBytes));
  try {
    return wholeOf([plain, decipher.final()]);
  } catch {
    // The only thing that `final` throws for: the tag does not fit, so this is not for us to read.
    return undefined;
  }
}

/** Joined bytes that are the whole of their buffer; Node's own are views of a shared one. */
function wholeOf(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((total, part) => total + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}
