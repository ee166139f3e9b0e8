import { bucketOf } from "../apiserver/index.ts";
import type { Random } from "../kernel/random.ts";
import { StoreError } from "../store/index.ts";
import { type DataFolder, isPresent } from "./data-folder.ts";
import { readIfPresent, writePrivately } from "./files.ts";

const keyBytes = 32;

/** What is encrypted on the disk: everything in it may be a password. */
export function isSealed(bucket: string): boolean {
  return bucket === bucketOf({ group: "", plural: "secrets" });
}

/**
 * The key that Secrets are encrypted with; made at the first start. A folder that has objects but
 * no key is refused: a new key would make every Secret in it unreadable for good.
 */
export function loadSecretsKey(folder: DataFolder, random: Random): Uint8Array {
  const text = readIfPresent(folder.secretsKey);
  if (text !== undefined) return parseSecretsKey(folder.secretsKey, text);
  if (isPresent(folder.database)) {
    throw new StoreError(
      "Unreadable",
      `${folder.secretsKey} is missing, and without it the Secrets in ${folder.path} cannot be ` +
        "read: put it back from your copy, or restore a backup with berth restore",
    );
  }
  return createSecretsKey(folder, random.bytes(keyBytes));
}

/** Keeps a new folder's key durably, before anything is encrypted with it. */
export function createSecretsKey(folder: DataFolder, key: Uint8Array): Uint8Array {
  writePrivately(folder.secretsKey, `${Buffer.from(key).toString("base64")}\n`);
  return key;
}

/** Reads the content of a key file, which is named in the complaint if it is not one. */
export function parseSecretsKey(path: string, text: string): Uint8Array {
  const key = Buffer.from(text.trim(), "base64");
  if (key.length === keyBytes) return key;
  throw new StoreError(
    "Unreadable",
    `${path} is not a key of Berth (32 bytes in base64): bring the right one`,
  );
}
