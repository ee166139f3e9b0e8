/** The releases of Proxmox VE that the simulator can be. */
export type Release = "7.4" | "8.4" | "9.2";

export const releases: readonly Release[] = ["7.4", "8.4", "9.2"];

export function isRelease(text: string): text is Release {
  return releases.some((release) => release === text);
}

/** What differs between the releases, in one table; found in recordings of the real API. */
export interface Quirks {
  readonly version: string;
  readonly repoId: string;
  readonly qemuVersion: string;
  /** Errors carry their text in the body too (pve-http-server 5.2), not only as reason phrase. */
  readonly messageInBody: boolean;
  /** 401 says what exactly was wrong with the credential. */
  readonly tellsAuthFailure: boolean;
  readonly checksumMismatch: string;
  /** What a part that another one needs is told, with the other's name. */
  readonly requires: (name: string) => string;
  /** Resize forks a worker and returns its UPID (qemu-server 8.0.2); before, it is synchronous. */
  readonly resizeIsTask: boolean;
  readonly resizeWithSnapshots: boolean;
  /** POST config forks before it takes the lock (9.1.19): a lock time-out is then the task's. */
  readonly configLocksInWorker: boolean;
  /** PUT config on a VM that is being created looks at the lock before it waits for the flock. */
  readonly configChecksLockFirst: boolean;
  /** Tags are put in order at creation too. */
  readonly sortsTagsAtCreate: boolean;
  /** Volumes that cannot be freed are counted as warnings, and a vanished storage is only one. */
  readonly destroyWarns: boolean;
  /** Content type "import" on directory storages, and upload of disk images. */
  readonly importContent: boolean;
  /** move_disk and clone look at the target storage before they fork. */
  readonly checksTargetStorage: boolean;
  /** Creating a snapshot of a VM that is not there fails before a worker is forked. */
  readonly snapshotLoadsFirst: boolean;
  /** A missing bridge is found by qemu-server itself, not by QEMU's network script. */
  readonly checksBridge: boolean;
  /** GET of one pool names the pool. */
  readonly poolIdInPool: boolean;
  readonly macPrefix: string | undefined;
  /** A repeated parameter is an array and fails the type check. */
  readonly arraysFailTypeCheck: boolean;
  /** Errors of the HTTP server itself come with a body. */
  readonly plainErrorBody: boolean;
  /** A file that is not of its format is told apart. */
  readonly detectsBrokenImages: boolean;
  readonly readsCloudinitPending: boolean;
  /** Logs name the volume that a copy goes to. */
  readonly logsTargets: boolean;
  /** The log of an unknown task is a list of one line; before, that line alone. */
  readonly missingLogIsList: boolean;
  /** Rows of guests carry the host's memory and pressure too. */
  readonly memhost: boolean;
  readonly diskCounters: boolean;
}

const since84: Omit<
  Quirks,
  | "version"
  | "repoId"
  | "qemuVersion"
  | "requires"
  | "configLocksInWorker"
  | "configChecksLockFirst"
  | "sortsTagsAtCreate"
  | "destroyWarns"
  | "checksBridge"
  | "logsTargets"
  | "missingLogIsList"
  | "memhost"
> = {
  messageInBody: true,
  tellsAuthFailure: false,
  checksumMismatch: "checksum mismatch (file change by other user?)",
  resizeIsTask: true,
  resizeWithSnapshots: true,
  importContent: true,
  checksTargetStorage: true,
  snapshotLoadsFirst: true,
  poolIdInPool: true,
  macPrefix: "BC:24:11",
  arraysFailTypeCheck: true,
  plainErrorBody: true,
  detectsBrokenImages: true,
  readsCloudinitPending: true,
  diskCounters: false,
};

const requiresThis = (name: string): string =>
  `missing property - '${name}' requires this property`;

const table: Readonly<Record<Release, Quirks>> = {
  "7.4": {
    version: "7.4-20",
    repoId: "e31e2c50",
    qemuVersion: "7.2.10",
    messageInBody: false,
    tellsAuthFailure: true,
    checksumMismatch: "checksum missmatch (file change by other user?)",
    requires: requiresThis,
    resizeIsTask: false,
    resizeWithSnapshots: false,
    configLocksInWorker: false,
    configChecksLockFirst: false,
    sortsTagsAtCreate: false,
    destroyWarns: false,
    importContent: false,
    checksTargetStorage: false,
    snapshotLoadsFirst: false,
    checksBridge: false,
    poolIdInPool: false,
    macPrefix: undefined,
    arraysFailTypeCheck: false,
    plainErrorBody: false,
    detectsBrokenImages: false,
    readsCloudinitPending: false,
    logsTargets: false,
    missingLogIsList: false,
    memhost: false,
    diskCounters: true,
  },
  "8.4": {
    ...since84,
    version: "8.4.21",
    repoId: "1f3b0c9e",
    qemuVersion: "9.2.0",
    requires: requiresThis,
    configLocksInWorker: false,
    configChecksLockFirst: false,
    sortsTagsAtCreate: false,
    destroyWarns: false,
    checksBridge: false,
    logsTargets: false,
    missingLogIsList: false,
    memhost: false,
  },
  "9.2": {
    ...since84,
    version: "9.2.11",
    repoId: "7c1d4b20",
    qemuVersion: "10.1.2",
    requires: (name) => `missing property required by '${name}'`,
    configLocksInWorker: true,
    configChecksLockFirst: true,
    sortsTagsAtCreate: true,
    destroyWarns: true,
    checksBridge: true,
    logsTargets: true,
    missingLogIsList: true,
    memhost: true,
  },
};

export function quirksOf(release: Release): Quirks {
  return table[release];
}
