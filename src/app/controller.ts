import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { namespaceResource } from "../api/builtin/index.ts";
import { virtualMachineKind } from "../api/index.ts";
import { systemNamespace } from "../apiserver/index.ts";
import {
  type Client,
  createClient,
  createHttpsTransport,
  loadKubeconfig,
  NetworkError,
} from "../client/index.ts";
import { type Place, type RunningControllers, startControllers } from "../controllers/index.ts";
import { ApiError } from "../kernel/status.ts";
import { createOutsideTime, type Metrics } from "../runtime/index.ts";
import { readIfPresent } from "./files.ts";
import { failingTransport, type ProcessFailpoints, readFailpoints } from "./failpoints.ts";
import { createConnect } from "./hypervisors.ts";
import { hypervisorMetrics } from "./hypervisor-metrics.ts";
import { createLog, type Log, type LogFormat } from "./log.ts";
import { clusterPlace } from "./place.ts";
import { serveMetrics } from "./metrics-port.ts";
import { certificateMetrics, createProgramMetrics } from "./program-metrics.ts";
import { systemClock, systemRandom } from "./system.ts";
import { createWeb } from "./web.ts";

/**
 * The controllers against a Kubernetes API somewhere else. Several may run: one leads, and the
 * others take over when its lease has ended. Throws where the API cannot be used.
 */
export async function startRemoteControllers(options: {
  readonly kubeconfig: string;
  readonly context: string | undefined;
  readonly version: string;
  readonly verbose: boolean;
  readonly logFormat?: LogFormat;
  readonly logLine: (line: string) => void;
  /** Where the metrics are served, in plain HTTP. Absent: nowhere. */
  readonly metrics?: { readonly host: string; readonly port: number };
}): Promise<{
  readonly server: string;
  /** Where the metrics are. */
  readonly metricsUrl: string | undefined;
  stop(): Promise<void>;
}> {
  const text = readIfPresent(options.kubeconfig);
  if (text === undefined) throw new Error(`there is no ${options.kubeconfig}`);
  const connection = loadKubeconfig(text, {
    ...(options.context === undefined ? {} : { context: options.context }),
    readFile: (path) => readFileSync(resolve(dirname(options.kubeconfig), path), "utf8"),
  });
  const transport = createHttpsTransport(connection);
  const log = createLog({
    write: options.logLine,
    nowMs: () => systemClock.nowMs(),
    level: options.verbose ? "debug" : "info",
    format: options.logFormat,
  });
  const failpoints = readFailpoints(log);
  const client = createClient({
    transport: failingTransport(transport.send, failpoints),
    clock: systemClock,
  });
  await ensureSystemNamespace(client);
  const metrics = createProgramMetrics(options.version);
  const port = options.metrics && (await serveMetrics(metrics, options.metrics));
  const place = await clusterPlace(client);
  const controllers = startHere(client, metrics, { log, failpoints, place });
  // The clock's timers do not keep a process alive, and between two looks at the lease nothing else
  // does: a replica that waits for its turn would end by itself.
  const alive = setInterval(() => undefined, aliveMs);
  return {
    server: connection.server,
    metricsUrl: port?.url,
    stop: async () => {
      await controllers.stop();
      await port?.close();
      transport.close();
      clearInterval(alive);
    },
  };
}

/** Any length does: the timer only has to be there. */
const aliveMs = 60_000;

/** The CRD of the machines themselves, as a client knows it. */
const crdKind = {
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  namespaced: false,
};

/**
 * Deleting CRDs deletes no machine: while the kind itself is going away, or cannot be read, what is
 * deleted is let go and not destroyed.
 */
async function isKindHereToStay(client: Client): Promise<boolean> {
  const name = `${virtualMachineKind.plural}.${virtualMachineKind.group}`;
  try {
    const { metadata } = await client.of(crdKind).get({ name });
    return metadata.deletionTimestamp === undefined;
  } catch (error) {
    if (error instanceof ApiError || error instanceof NetworkError) return false;
    throw error;
  }
}

interface Here {
  readonly log: Log;
  readonly failpoints: ProcessFailpoints | undefined;
  readonly place: Place | undefined;
}

function startHere(
  client: Client,
  metrics: Metrics,
  { log, failpoints, place }: Here,
): RunningControllers {
  const outside = createOutsideTime(systemClock);
  const calls = hypervisorMetrics(metrics, { clock: systemClock, outside });
  const noteCertificate = certificateMetrics(metrics);
  const environment = { clock: systemClock, random: systemRandom };
  return startControllers({
    client,
    clock: systemClock,
    random: systemRandom,
    connect: createConnect({ ...environment, metrics: calls, noteCertificate, failpoints }),
    metrics,
    outside,
    web: createWeb(),
    log: (level, message, fields) => log(level, message, { ...fields }),
    ...(place === undefined ? {} : { place }),
    mayDestroy: () => isKindHereToStay(client),
    // Two replicas on one machine are two as well.
    identity: `${hostname()}-${systemRandom.uuid().slice(0, 8)}`,
  });
}

/** Where the installation's id, the lease and the users' Secrets are. */
async function ensureSystemNamespace(client: Client): Promise<void> {
  const namespaces = client.of(namespaceResource);
  try {
    await namespaces.get({ name: systemNamespace });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    const metadata = { name: systemNamespace };
    await namespaces.create({ apiVersion: "v1", kind: "Namespace", metadata });
  }
}
