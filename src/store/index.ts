export type { Journal, JournalContent, JournalRecord } from "./journal.ts";
export {
  createMemoryDisk,
  type CrashOptions,
  type DiskFault,
  type MemoryDisk,
  type MemoryDiskOptions,
  MemoryJournal,
} from "./memory-journal.ts";
export { openStore, type OpenStoreOptions, type StoreLimits } from "./open-store.ts";
export {
  type Change,
  type Decision,
  type Entry,
  type Key,
  type ListQuery,
  type ListResult,
  type Store,
  StoreError,
  type StoreErrorCode,
  type WatchOptions,
  type WatchResult,
  type WriteResult,
} from "./store.ts";
export {
  type BackedUpFile,
  type BackupOptions,
  type BackupSource,
  type BackupSummary,
  createBackup,
  readBackupFiles,
} from "./backup.ts";
export { type Cipher, cipherKeyBytes, createCipher } from "./cipher.ts";
export { type FolderLock, lockFolder } from "./folder-lock.ts";
export { restoreBackup, type RestoreOptions, type RestoreSummary } from "./restore.ts";
export { type SealOptions, sealJournal } from "./sealed-journal.ts";
export { storeFormat } from "./sqlite-format.ts";
export { openSqliteJournal, type SqliteJournalOptions } from "./sqlite-journal.ts";
export { type ReadOptions, type StoreSummary, verifyStore } from "./verify.ts";
