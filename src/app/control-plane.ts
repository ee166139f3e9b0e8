import { builtinResources } from "../api/builtin/index.ts";
import { berthResources } from "../api/index.ts";
import type {
  ApiServer,
  HealthCheck,
  Listener,
  ListenOptions,
  ServerEnvironment,
} from "../apiserver/index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createDiscovery,
  createOpenApi,
  createResourceHandler,
  createRoleAuthorizer,
  createSchemaRunners,
  createUserAuthenticator,
  listen,
  startLifecycle,
} from "../apiserver/index.ts";
import { type Client, createClient, inProcess } from "../client/index.ts";
import { forgetLease, type Place, startControllers } from "../controllers/index.ts";
import type { Cancel, Clock } from "../kernel/clock.ts";
import { createOutsideTime, type Metrics } from "../runtime/index.ts";
import {
  createCipher,
  type FolderLock,
  lockFolder,
  openSqliteJournal,
  openStore,
  sealJournal,
  type Store,
} from "../store/index.ts";
import { prepareKubeconfig } from "./administrator.ts";
import { loadCertificates } from "./certificates.ts";
import { type DataFolder, dataFolder, prepareDataFolder } from "./data-folder.ts";
import { startDemo, wantsDemo } from "./demo.ts";
import { errorCode } from "./files.ts";
import {
  failingJournal,
  failingTransport,
  type ProcessFailpoints,
  readFailpoints,
} from "./failpoints.ts";
import { createFirstObjects } from "./first-objects.ts";
import { createConnect } from "./hypervisors.ts";
import { hypervisorMetrics } from "./hypervisor-metrics.ts";
import { folderPlace } from "./place.ts";
import { createLogFile } from "./log-file.ts";
import { createLog, joinLogs, type Log, type LogFormat } from "./log.ts";
import {
  certificateMetrics,
  createProgramMetrics,
  expiryOf,
  measureStore,
  observeRequests,
  servedMetrics,
  type NoteCertificate,
} from "./program-metrics.ts";
import { isSealed, loadSecretsKey } from "./secrets-key.ts";
import { systemClock, systemRandom } from "./system.ts";
import { createWeb } from "./web.ts";

export interface ControlPlaneOptions {
  readonly data: string;
  readonly version: string;
  readonly port: number;
  readonly host: string;
  /** Further names and addresses under which clients reach this server. */
  readonly tlsNames: readonly string[];
  readonly serveAll: boolean;
  /** Whether a simulated cluster may be started. */
  readonly demo: boolean;
  readonly verbose: boolean;
  readonly logFormat?: LogFormat;
  readonly logLine: (line: string) => void;
}

export interface ControlPlane {
  readonly url: string;
  /** The simulated hypervisor, where there is one. */
  readonly demo: string | undefined;
  readonly kubeconfig: string;
  /** Resolves if the control plane cannot go on: what is on the disk became unknown. */
  readonly failed: Promise<Error>;
  /** Ends watches, answers what is under way, makes the last writes durable. Safe to repeat. */
  stop(): Promise<void>;
}

const compactEveryMs = 30_000;
/** How long requests under way may take after a stop was asked for. */
const drainMs = 5_000;

/** Starts everything of one installation, or throws with nothing left running. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const folder = dataFolder(options.data);
  const log = createLogs(options, folder);
  const failpoints = readFailpoints(log);
  const undo: (() => Promise<void> | void)[] = [];
  const stop = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };
  try {
    return await assemble({ options, folder, log, undo, stop, failpoints });
  } catch (error) {
    await stop();
    throw error;
  }
}

/** To the terminal what matters, and more of it into the folder's file. */
function createLogs({ verbose, logFormat, logLine }: ControlPlaneOptions, folder: DataFolder): Log {
  const nowMs = (): number => systemClock.nowMs();
  const level = verbose ? "debug" : "warn";
  return joinLogs(
    createLog({ write: logLine, nowMs, level, format: logFormat }),
    createLog({ write: createLogFile(folder.log), nowMs, level: "info", format: logFormat }),
  );
}

interface Assembly {
  readonly options: ControlPlaneOptions;
  readonly folder: DataFolder;
  readonly log: Log;
  /** What was started, to be undone in reverse order. */
  readonly undo: (() => Promise<void> | void)[];
  readonly stop: () => Promise<void>;
  /** Undefined but in tests of crashes. */
  readonly failpoints: ProcessFailpoints | undefined;
}

async function assemble(assembly: Assembly): Promise<ControlPlane> {
  const { options, folder, log, undo, failpoints } = assembly;
  const failed = Promise.withResolvers<Error>();
  const lock: FolderLock = lockFolder(folder.path);
  undo.push(() => lock.release());
  prepareDataFolder(folder);
  const hasDemo = options.demo && wantsDemo(folder);
  const metrics = createProgramMetrics(options.version);
  const opened = await openFolderStore(assembly, (error) => failed.resolve(error));
  const store = measureStore(opened, metrics, folder.database);
  undo.push(() => store.close());
  const starting: { why: string | undefined } = { why: "still starting" };
  const { server, environment } = createServer({ ...assembly, store, starting, metrics });
  undo.push(() => server.close());
  const client = createClient({
    transport: failingTransport(
      inProcess((request) => server.handleAs(controllersUser, request)),
      failpoints,
    ),
    clock: systemClock,
  });
  await createFirstObjects(client, systemRandom);
  const lifecycle = startLifecycle(environment);
  undo.push(() => lifecycle.stop());
  undo.push(compactRegularly(store, systemClock, log));
  const environmentWithLog = { clock: systemClock, random: systemRandom, log };
  const names = [options.host, ...options.tlsNames].filter((name) => !isWildcard(name));
  const certificates = await loadCertificates(folder, names, environmentWithLog);
  const listener = await listenOrExplain(options, {
    server,
    tls: certificates.server,
    clock: systemClock,
    log,
  });
  undo.push(() => listener.close(drainMs));
  const url = `https://${hostInUrl(options.host)}:${listener.port}`;
  const authority = certificates.authority;
  await prepareKubeconfig({ folder, server, client, url, authority, random: systemRandom });
  // Last, and so the first to stop: while they finish what is under way, the API is still there.
  const demo = hasDemo ? await startDemo(folder, client) : undefined;
  if (demo) undo.push(() => demo.close());
  const noteCertificate = certificateMetrics(metrics);
  noteCertificate("server", "", expiryOf(certificates.server.cert));
  noteCertificate("authority", "", expiryOf(authority));
  const place = folderPlace(folder.path);
  const parts = { client, log, metrics, noteCertificate, failpoints, place };
  undo.push(await startEmbeddedControllers(parts));
  starting.why = undefined;
  const { kubeconfig } = folder;
  return { url, demo: demo?.url, kubeconfig, failed: failed.promise, stop: assembly.stop };
}

/**
 * Starts the controllers in this process. The folder's lock says that no other process has them, so
 * the lease of an incarnation that was killed is not waited for; what it had begun is settled by
 * looking, as after every crash.
 */
async function startEmbeddedControllers({
  client,
  log,
  metrics,
  noteCertificate,
  failpoints,
  place,
}: {
  readonly client: Client;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly noteCertificate: NoteCertificate;
  readonly failpoints: ProcessFailpoints | undefined;
  readonly place: Place;
}): Promise<() => Promise<void>> {
  await forgetLease(client);
  const environment = { clock: systemClock, random: systemRandom };
  const outside = createOutsideTime(systemClock);
  const calls = hypervisorMetrics(metrics, { clock: systemClock, outside });
  const controllers = startControllers({
    client,
    clock: systemClock,
    random: systemRandom,
    connect: createConnect({ ...environment, metrics: calls, noteCertificate, failpoints }),
    metrics,
    outside,
    web: createWeb(),
    log: (level, message, fields) => log(level, message, { ...fields }),
    whenAbsent: "trust",
    place,
  });
  return () => controllers.stop();
}

/** The two things that go wrong here have a remedy on the command line, so it is named. */
async function listenOrExplain(
  { host, port }: ControlPlaneOptions,
  rest: Omit<ListenOptions, "host" | "port">,
): Promise<Listener> {
  try {
    return await listen({ ...rest, host, port });
  } catch (error) {
    const code = errorCode(error);
    if (code === "EADDRINUSE") {
      throw new Error(`port ${port} on ${host} is in use: choose another by --port N`, {
        cause: error,
      });
    }
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new Error(`${host} is no address of this machine: choose another by --listen ADDR`, {
        cause: error,
      });
    }
    if (code === "EACCES") {
      throw new Error(`port ${port} needs more rights: choose one above 1023`, { cause: error });
    }
    throw error;
  }
}

async function openFolderStore(
  { folder, failpoints }: Assembly,
  onFailed: (error: Error) => void,
): Promise<Store> {
  const key = loadSecretsKey(folder, systemRandom);
  const journal = await openSqliteJournal({
    path: folder.database,
    ...(failpoints === undefined ? {} : { failpoints: failpoints.settings }),
  });
  const sealed = sealJournal(failingJournal(journal, failpoints), {
    cipher: createCipher(key, systemRandom),
    sealed: isSealed,
  });
  return await openStore({ journal: sealed, clock: systemClock, onFailed });
}

function createServer(
  assembly: Assembly & {
    readonly store: Store;
    readonly starting: { why: string | undefined };
    readonly metrics: Metrics;
  },
): { server: ApiServer; environment: ServerEnvironment } {
  const { options, store, starting, log, metrics } = assembly;
  const resources = [...builtinResources, ...berthResources];
  const catalogue = createCatalogue(resources, { serveAll: options.serveAll });
  const environment: ServerEnvironment = {
    store,
    catalogue,
    clock: systemClock,
    random: systemRandom,
    runnerOf: createSchemaRunners(),
  };
  const health = (): HealthCheck[] => [{ name: "start", failure: starting.why }];
  const server = createApiServer({
    catalogue,
    resources: createResourceHandler(environment),
    discovery: createDiscovery(catalogue),
    openApi: createOpenApi(catalogue),
    authenticators: [createUserAuthenticator(store)],
    authorizer: createRoleAuthorizer(),
    health,
    metrics: servedMetrics(metrics),
    observe: observeRequests(metrics),
    version: options.version,
    clock: systemClock,
    random: systemRandom,
    log,
  });
  return { server, environment };
}

/** Forgets old changes from time to time. A full disk only puts it off. */
function compactRegularly(store: Store, clock: Clock, log: Log): () => void {
  let cancel: Cancel = () => undefined;
  const again = (): void => {
    cancel = clock.after(compactEveryMs, () => {
      store
        .compact(clock.nowMs())
        .catch((error: unknown) => log("warn", "could not compact", { error: String(error) }))
        .finally(again);
    });
  };
  again();
  return () => cancel();
}

function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** A wildcard is where we listen, not where anybody connects to. */
function hostInUrl(host: string): string {
  if (isWildcard(host)) return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}
