import { PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";

/** Tags as they are stored: lower case, in order, each once. */
export function sortedTags(text: string): string {
  const tags = splitList(text).map((tag) => tag.toLowerCase());
  return [...new Set(tags)].sort().join(";");
}

const keyTypes =
  /^(ssh-(rsa|dss|ed25519)|ecdsa-sha2-nistp\d+|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)$/;

/** Throws unless every line of `sshkeys` is a public key. The value is percent-encoded itself. */
export function demandSshKeys(settings: Readonly<Record<string, string>>): void {
  const { sshkeys } = settings;
  if (sshkeys === undefined) return;
  const lines = decodeURIComponent(sshkeys)
    .split("\n")
    .filter((line) => line.trim() !== "");
  for (const line of lines) {
    const words = line.trim().split(/\s+/);
    const at = words.findIndex((word) => keyTypes.test(word));
    const isKey = at >= 0 && /^[A-Za-z0-9+/]{20,}={0,2}$/.test(words[at + 1] ?? "");
    if (!isKey) throw new PveError("SSH public key validation error");
  }
}
