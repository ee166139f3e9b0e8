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
import { type RunningControllers, startControllers } from "../controllers/index.ts";
import { ApiError } from "../kernel/status.ts";
import { readIfPresent } from "./files.ts";
import { failingTransport, type ProcessFailpoints, readFailpoints } from "./failpoints.ts";
import { createConnect } from "./hypervisors.ts";
import { createLog, type Log } from "./log.ts";
import { systemClock, systemRandom } from "./system.ts";
import { createWeb } from "./web.ts";

/**
 * The controllers against a Kubernetes API somewhere else. Several may run: one leads, and the
 * others take over when its lease has ended. Throws where the API cannot be used.
 */
export async function startRemoteControllers(options: {
  readonly kubeconfig: string;
  readonly context: string | undefined;
  readonly verbose: boolean;
  readonly logLine: (line: string) => void;
}): Promise<{ readonly server: string; stop(): Promise<void> }> {
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
  });
  const failpoints = readFailpoints(log);
  const client = createClient({
    transport: failingTransport(transport.send, failpoints),
    clock: systemClock,
  });
  await ensureSystemNamespace(client);
  const controllers = startHere(client, log, failpoints);
  // The clock's timers do not keep a process alive, and between two looks at the lease nothing else
  // does: a replica that waits for its turn would end by itself.
  const alive = setInterval(() => undefined, aliveMs);
  return {
    server: connection.server,
    stop: async () => {
      await controllers.stop();
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

function startHere(
  client: Client,
  log: Log,
  failpoints: ProcessFailpoints | undefined,
): RunningControllers {
  return startControllers({
    client,
    clock: systemClock,
    random: systemRandom,
    connect: createConnect({ clock: systemClock, random: systemRandom, failpoints }),
    web: createWeb(),
    log: (level, message, fields) => log(level, message, { ...fields }),
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
