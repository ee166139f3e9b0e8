import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Where everything of one installation is. Nothing is kept outside of it. */
export interface DataFolder {
  readonly path: string;
  /** The objects and their history. */
  readonly database: string;
  /** The key that Secrets are encrypted with. */
  readonly secretsKey: string;
  readonly authorityCertificate: string;
  readonly authorityKey: string;
  readonly serverCertificate: string;
  readonly serverKey: string;
  /** The administrator's way in. */
  readonly kubeconfig: string;
  /** The last lines of the log. */
  readonly log: string;
}

export function dataFolder(path: string): DataFolder {
  return {
    path,
    database: join(path, "berth.db"),
    secretsKey: join(path, "secrets.key"),
    authorityCertificate: join(path, "pki", "ca.crt"),
    authorityKey: join(path, "pki", "ca.key"),
    serverCertificate: join(path, "pki", "server.crt"),
    serverKey: join(path, "pki", "server.key"),
    kubeconfig: join(path, "kubeconfig"),
    log: join(path, "berth.log"),
  };
}

/** Makes the folder where it is missing, closed to everybody but its owner. */
export function prepareDataFolder(folder: DataFolder): void {
  mkdirSync(join(folder.path, "pki"), { recursive: true, mode: 0o700 });
}

export function isPresent(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
