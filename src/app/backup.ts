import { relative } from "node:path";
import {
  type BackupSource,
  type BackupSummary,
  createBackup,
  createCipher,
  readBackupFiles,
  restoreBackup,
  type RestoreSummary,
} from "../store/index.ts";
import { type DataFolder, dataFolder, isPresent } from "./data-folder.ts";
import { readIfPresent } from "./files.ts";
import { createSecretsKey, isSealed, parseSecretsKey } from "./secrets-key.ts";
import { systemClock, systemRandom } from "./system.ts";

/** Copies an installation, running or not, into one file. */
export function backupInstallation(options: {
  readonly data: string;
  readonly target: string;
  readonly withKey: boolean;
  readonly force: boolean;
}): BackupSummary {
  const folder = dataFolder(options.data);
  return createBackup({
    database: folder.database,
    target: options.target,
    files: filesBeside(folder),
    withKey: options.withKey,
    force: options.force,
    clock: systemClock,
  });
}

/**
 * Makes a data folder of a backup. The key comes from the backup or from a file; without either,
 * what is encrypted stays behind and the folder gets a key of its own.
 */
export function restoreInstallation(options: {
  readonly backup: string;
  readonly data: string;
  readonly keyFile: string | undefined;
  readonly force: boolean;
}): RestoreSummary {
  const folder = dataFolder(options.data);
  const key = findKey(folder, options);
  const summary = restoreBackup({
    backup: options.backup,
    folder: folder.path,
    databaseName: relative(folder.path, folder.database),
    force: options.force,
    clock: systemClock,
    sealed: isSealed,
    cipher: key && createCipher(key, systemRandom),
  });
  if (!isPresent(folder.secretsKey)) createSecretsKey(folder, key ?? systemRandom.bytes(32));
  return summary;
}

/** All of them are keys or go with one: a CA without its key signs nothing. */
function filesBeside(folder: DataFolder): BackupSource[] {
  const paths = [
    folder.secretsKey,
    folder.authorityCertificate,
    folder.authorityKey,
    folder.kubeconfig,
  ];
  return paths.filter(isPresent).map((path) => {
    return { name: relative(folder.path, path), path, mode: 0o600, isKey: true };
  });
}

function findKey(
  folder: DataFolder,
  options: { readonly backup: string; readonly keyFile: string | undefined },
): Uint8Array | undefined {
  if (options.keyFile !== undefined) {
    return parseSecretsKey(options.keyFile, readIfPresent(options.keyFile) ?? "");
  }
  const name = relative(folder.path, folder.secretsKey);
  const file = readBackupFiles(options.backup).find((candidate) => candidate.name === name);
  return file && parseSecretsKey(name, Buffer.from(file.content).toString());
}
