/**
 * What this repository has decided about itself, as data. The rules beside it read these tables; a
 * change here is a change of architecture and wants a reason in the commit.
 */

/** The rooms of src and what each may import, besides itself. Nothing is inherited. */
export const rooms: Readonly<Record<string, readonly string[] | "all">> = {
  kernel: [],
  api: ["kernel"],
  store: ["kernel"],
  apiserver: ["kernel", "api", "store"],
  client: ["kernel", "api"],
  runtime: ["kernel", "client"],
  hypervisor: ["kernel", "api"],
  "drivers/*": ["kernel", "api", "hypervisor"],
  controllers: ["kernel", "api", "client", "runtime", "hypervisor", "controllers/*"],
  "controllers/*": [
    "kernel",
    "api",
    "client",
    "runtime",
    "hypervisor",
    "dialects",
    "gitops",
    // What controllers share: the ledger of Claims, the operations engine, failures as people see
    // them, what is told of the work, connections.
    "controllers/claims",
    "controllers/operations",
    "controllers/failures",
    "controllers/reports",
    "controllers/hypervisor",
  ],
  dialects: ["kernel", "api"],
  gitops: ["kernel", "api", "client"],
  sim: "all",
  app: "all",
  cli: "all",
};

/** The simulator may know everything, so only what puts the program together may know it. */
export const simImporters = ["app", "cli", "sim"];

/** Rooms that may use neither packages nor Node's own modules. */
export const pureRooms = ["kernel"];

/**
 * A room is entered through its index.ts. These files are doors too: contracts made of types that
 * several rooms share, which would otherwise drag a whole room along.
 */
export const doors: readonly RegExp[] = [
  /^src\/kernel\/[^/]+\.ts$/,
  /^src\/api\/resource\.ts$/,
  /^src\/api\/schema\/[^/]+\.ts$/,
  /^src\/api\/[^/]+\/index\.ts$/,
  /^src\/store\/(store|journal)\.ts$/,
  /^src\/apiserver\/contract\.ts$/,
  /^src\/hypervisor\/conformance\.ts$/,
  /^src\/sim\/[^/]+\/index\.ts$/,
  /^src\/app\/system\.ts$/,
];

/** Where the program starts. What cannot be reached from here is not part of it. */
export const programEntries = ["src/cli/main.ts"];

/** Rooms of the program that it need not reach yet: tests alone may use them. */
export const waitingRooms: readonly { pattern: RegExp; reason: string }[] = [];

/** Files that only tests use, and may: the program must not be able to reach them. */
export const testSupport: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^src\/.*\/testing(\.ts$|\/)/, reason: "fakes and fixtures that several tests share" },
  { pattern: /\/conformance\.ts$/, reason: "the suite that every implementation runs" },
  { pattern: /\/fixtures?\.ts$/, reason: "what the tests of one room set up" },
];

/**
 * Where the real clock, real randomness and the environment come in. Everything else gets them as
 * arguments, so that a test or the simulation can hold them.
 */
export const adapters: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^src\/(app|cli)\//, reason: "puts the program together with the real machine" },
  { pattern: /^(scripts|bin)\//, reason: "tools run on the real machine" },
  { pattern: /^src\/sim\/harness\/turns\.ts$/, reason: "lets a history wait for its own promises" },
];

/** The room of the operations engine: through it alone a controller changes a hypervisor. */
export const engineRoom = "src/controllers/operations/";

/** What single files of controllers may use all the same, and why. */
export const engineExceptions: readonly { path: string; words: string[]; reason: string }[] = [
  {
    path: "src/controllers/hypervisor/breaker.ts",
    words: ["begin", "look", "recall", "cancel"],
    reason: "wraps a driver, and passes every call on",
  },
  {
    path: "src/controllers/hypervisor/reconcile.ts",
    words: ["nextAttempt"],
    reason: "paces its looks at a hypervisor, which have no effect",
  },
  {
    path: "src/controllers/hypervisor/last-failure.ts",
    words: ["nextRetryAt"],
    reason: "the same looks, after a restart: no step failed, and no object counts them",
  },
  {
    path: "src/controllers/virtual-machine/lost-status.ts",
    words: ["since"],
    reason: "tells the engine from when on work is recalled for a VM whose status was lost",
  },
  {
    path: "src/controllers/reports/unready.ts",
    words: ["since"],
    reason: "measures for a metric how long a condition lasted",
  },
];

/** File sizes in lines. */
export const fileLinesMax = 400;
export const testLinesMax = 800;
export const readmeLinesMax = 60;
export const columnsMax = 100;
