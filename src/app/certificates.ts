import type { KeyPair, PkiEnvironment } from "../apiserver/index.ts";
import {
  createAuthority,
  issueServerCertificate,
  localNames,
  renewalReason,
} from "../apiserver/index.ts";
import type { DataFolder } from "./data-folder.ts";
import { readIfPresent, writePrivately } from "./files.ts";
import type { Log } from "./log.ts";

export interface Certificates {
  readonly authority: string;
  readonly server: KeyPair;
}

/**
 * The folder's certificates: the authority is made once, the server's certificate whenever it is
 * missing, about to expire, or does not name an address that clients use.
 */
export async function loadCertificates(
  folder: DataFolder,
  names: readonly string[],
  environment: PkiEnvironment & { readonly log: Log },
): Promise<Certificates> {
  const authority = await loadAuthority(folder, environment);
  const wanted = { authority, names: [...localNames, ...names], nowMs: environment.clock.nowMs() };
  const present = readPair(folder.serverCertificate, folder.serverKey);
  const reason = present ? renewalReason(present, wanted) : "there is none yet";
  if (present && reason === undefined) return { authority: authority.cert, server: present };
  environment.log("debug", "makes a server certificate", { because: reason });
  const server = await issueServerCertificate(authority, wanted.names, environment);
  writePair(folder.serverCertificate, folder.serverKey, server);
  return { authority: authority.cert, server };
}

async function loadAuthority(folder: DataFolder, environment: PkiEnvironment): Promise<KeyPair> {
  const present = readPair(folder.authorityCertificate, folder.authorityKey);
  if (present) return present;
  const made = await createAuthority(environment);
  writePair(folder.authorityCertificate, folder.authorityKey, made);
  return made;
}

function readPair(certificatePath: string, keyPath: string): KeyPair | undefined {
  const cert = readIfPresent(certificatePath);
  const key = readIfPresent(keyPath);
  return cert !== undefined && key !== undefined ? { cert, key } : undefined;
}

function writePair(certificatePath: string, keyPath: string, pair: KeyPair): void {
  // The key first: a certificate without its key would be taken for a whole pair by nobody.
  writePrivately(keyPath, pair.key);
  writePrivately(certificatePath, pair.cert);
}
