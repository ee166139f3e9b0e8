import { hash } from "node:crypto";
import type { Random } from "../../kernel/random.ts";

/**
 * The prefix lets people and secret scanners recognise a token that went astray. The rest is
 * 256 random bits, so that guessing is hopeless and one round of SHA-256 is enough to keep it.
 */
const tokenPrefix = "berth_";
const tokenBytes = 32;

export function createToken(random: Random): string {
  return `${tokenPrefix}${Buffer.from(random.bytes(tokenBytes)).toString("base64url")}`;
}

/** What is stored of a token, and looked up: where it matches says nothing about the token. */
export function tokenHash(token: string): string {
  return hash("sha256", token, "hex");
}

export function isTokenHash(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}
