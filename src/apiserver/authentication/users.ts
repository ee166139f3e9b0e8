import { assert } from "../../kernel/assert.ts";
import type { Change, Entry, Store } from "../../store/store.ts";
import { bucketOf } from "../contract.ts";
import { systemNamespace } from "../authorization/index.ts";
import type { Authenticator } from "./authenticator.ts";
import { tokenHash } from "./token.ts";
import type { StoredUser } from "./user-secret.ts";
import { readUserSecret } from "./user-secret.ts";

const bucket = bucketOf({ group: "", plural: "secrets" });
const prefix = `${systemNamespace}/`;

/** Recognises users' tokens. `close` ends its watch on the store. */
export interface UserAuthenticator extends Authenticator {
  close(): void;
}

/**
 * Knows the users by their Secrets. The index follows the store's watch, which delivers before a
 * write is acknowledged to its writer: once `berth user remove` returned, the token is dead.
 */
export function createUserAuthenticator(store: Store): UserAuthenticator {
  const byId = new Map<string, StoredUser>();
  const byHash = new Map<string, StoredUser>();
  const put = (entry: Entry): void => {
    remove(entry.id);
    const stored = parseEntry(entry);
    if (stored === undefined) return;
    byId.set(entry.id, stored);
    byHash.set(stored.tokenSha256, stored);
  };
  const remove = (id: string): void => {
    const stored = byId.get(id);
    if (stored === undefined) return;
    byId.delete(id);
    if (byHash.get(stored.tokenSha256) === stored) byHash.delete(stored.tokenSha256);
  };
  const deliver = (changes: readonly Change[]): void => {
    for (const change of changes) {
      if (change.type === "put") put(change.entry);
      else remove(change.entry.id);
    }
  };
  const stop = follow(store, put, deliver);
  return { authenticate: (token) => byHash.get(tokenHash(token))?.user, close: stop };
}

function follow(
  store: Store,
  put: (entry: Entry) => void,
  deliver: (changes: readonly Change[]) => void,
): () => void {
  const listed = store.list({ bucket, prefix });
  assert(listed.ok, "the newest state can always be listed");
  for (const entry of listed.entries) put(entry);
  const watch = store.watch({ bucket, prefix, afterRevision: listed.revision, deliver });
  assert(watch.ok, "the newest revision can always be watched");
  return watch.stop;
}

function parseEntry(entry: Entry): StoredUser | undefined {
  try {
    const secret: unknown = JSON.parse(Buffer.from(entry.value).toString());
    return readUserSecret(secret);
  } catch (error) {
    // What cannot be read is nobody's token. The watch must go on for the others.
    assert(error instanceof SyntaxError, "only the JSON of a stored Secret can be at fault");
    return undefined;
  }
}
