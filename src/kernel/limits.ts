/** Every bound of the system, with its reason. Nothing grows without one. */
export const limits = {
  /** kube-apiserver's own bound on a request body, so that the same manifests fit in both homes. */
  requestBodyBytes: 3 * 1024 * 1024,
  /** etcd's bound on one object (1.5 MiB): what is stored here must also fit there. */
  objectBytes: 1536 * 1024,
  /** Beyond it a request is an attack, not a URL. kubectl's longest stay under 2 KiB. */
  urlBytes: 16 * 1024,
  /** All headers of one request together. A bearer token and kubectl's own fit many times over. */
  headerBytes: 32 * 1024,
  /** A status, as JSON. It is written often, and every watcher gets all of it each time. */
  statusBytes: 16 * 1024,
  /** Depth of nested JSON. Deeper than any schema of ours, and shallow enough for recursion. */
  jsonDepth: 100,
  /** What a client gets at most in one page; kubectl asks for 500. */
  pageItems: 10_000,
  /** A watcher that is so far behind is closed; it lists again and loses nothing. */
  watchBufferBytes: 8 * 1024 * 1024,
  /** Open watches. Each costs a socket and a subscription. */
  watchesMax: 2_000,
  /** How long a watch may run before the server asks the client to come again. */
  watchSecondsMax: 60 * 60,
  /** How often an idle watch that asked for bookmarks gets one. */
  bookmarkEveryMs: 60_000,
  /** How long changes stay readable for watches and old pages, as etcd's default compaction. */
  historyMs: 5 * 60_000,
  /** The same in number and size: a burst of writes must not fill the memory. */
  historyChanges: 50_000,
  historyBytes: 64 * 1024 * 1024,
  /** YAML aliases in one document. More is a bomb, not a manifest. */
  yamlAliases: 100,
  /**
   * What volumes may hold, per storage, that failed attempts probably left and nobody can prove to
   * be ours. About twenty imports of a usual cloud image: enough for a bad day, and a small part of
   * any pool. Beyond it nothing more is created on the storage.
   */
  probableBytesPerStorage: 64 * 1024 ** 3,
  /** Writes waiting for the disk. Beyond it the server answers 429 instead of growing. */
  pendingWrites: 10_000,
} as const;
