import { Violation } from "./violation.ts";

/**
 * What no one may read anywhere but in a Secret: the token of every cluster, and a part of the
 * user-data of machines. One word for all, so that one search finds each.
 */
export const canary = "00000000-0000-4000-8000-0000000000aa";

const needles = [Buffer.from(canary), ...encoded(canary)];

/** Whether the secret stands in there, plain or as Base64 of it and whatever is around it. */
export function holdsSecret(content: Uint8Array | string): boolean {
  const bytes =
    typeof content === "string"
      ? Buffer.from(content)
      : Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  return needles.some((needle) => bytes.includes(needle));
}

/** Nobody but a Secret itself holds the secret. */
export function demandNoSecret(where: () => string, content: Uint8Array | string): void {
  if (holdsSecret(content)) throw new Violation("secrets", `a secret is in ${where()}`);
}

/** Base64 of a text depends on where it begins: for each beginning, what is certain of it. */
function encoded(text: string): Buffer[] {
  return [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), Buffer.from(text)]).toString("base64");
    const certain = whole.slice(Math.ceil((before * 8) / 6), -4);
    return Buffer.from(certain);
  });
}
