import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { secretResource } from "../api/builtin/index.ts";
import { hypervisorKind, type WrittenHypervisor } from "../api/index.ts";
import { systemNamespace } from "../apiserver/index.ts";
import type { Client } from "../client/index.ts";
import { ApiError } from "../kernel/status.ts";
import { type Simulator, startProxmoxSimulator } from "../sim/index.ts";
import { type DataFolder, isPresent } from "./data-folder.ts";
import { errorCode, readIfPresent, writePrivately } from "./files.ts";
import { systemClock, systemRandom } from "./system.ts";

const name = "demo";

/** Whether the folder has a demo already, or is new and may get one. */
export function wantsDemo(folder: DataFolder): boolean {
  return !isPresent(folder.database) || isPresent(demoFolder(folder));
}

/**
 * Starts the simulated cluster of a data folder and declares it as the Hypervisor `demo`. Its state
 * and its port stay the same over restarts; where the port was taken meanwhile, the declaration and
 * its Secret are written anew.
 */
export async function startDemo(folder: DataFolder, client: Client): Promise<Simulator> {
  mkdirSync(demoFolder(folder), { recursive: true, mode: 0o700 });
  const simulator = await startOnOldPort(folder);
  await declareSecret(client, simulator);
  await declareHypervisor(client, simulator);
  return simulator;
}

function demoFolder(folder: DataFolder): string {
  return join(folder.path, "demo");
}

async function startOnOldPort(folder: DataFolder): Promise<Simulator> {
  const portFile = join(demoFolder(folder), "port");
  const start = (port: number): Promise<Simulator> => {
    return startProxmoxSimulator({
      port,
      version: "9.2",
      clock: systemClock,
      random: systemRandom,
      dataFile: join(demoFolder(folder), "cluster.json"),
    });
  };
  const oldPort = Number(readIfPresent(portFile) ?? 0);
  const simulator = await start(oldPort).catch((error: unknown) => {
    if (errorCode(error) !== "EADDRINUSE") throw error;
    return start(0);
  });
  const { port } = new URL(simulator.url);
  if (Number(port) !== oldPort) writePrivately(portFile, `${port}\n`);
  return simulator;
}

const givenFor = "berth.dev/demo-endpoint";

async function declareSecret(client: Client, simulator: Simulator): Promise<void> {
  const { tokenId, tokenSecret } = simulator;
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  // Credentials count for the endpoints that they were given for: another port needs another write.
  const metadata = { namespace: systemNamespace, name, annotations: { [givenFor]: simulator.url } };
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    data: { tokenId: encode(tokenId), tokenSecret: encode(tokenSecret) },
  };
  await createOr(
    () => client.of(secretResource).create(secret),
    () => client.of(secretResource).patch({ namespace: systemNamespace, name }, { merge: secret }),
  );
}

async function declareHypervisor(client: Client, simulator: Simulator): Promise<void> {
  const hypervisor: WrittenHypervisor = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      description: "A simulation: three Proxmox nodes that exist only inside this berth up.",
      endpoints: [simulator.url],
      credentials: { secretRef: { namespace: systemNamespace, name } },
      tls: { fingerprints: [simulator.fingerprint] },
      idRange: { first: 1000, last: 1999 },
      defaults: { storage: "local-zfs", imageStorage: "local" },
      limits: { pollSeconds: 2 },
    },
  };
  const hypervisors = client.of(hypervisorKind);
  const { endpoints, tls } = hypervisor.spec;
  await createOr(
    () => hypervisors.create(hypervisor),
    () => hypervisors.patch({ name }, { merge: { spec: { endpoints, tls } } }),
  );
}

async function createOr(
  create: () => Promise<unknown>,
  change: () => Promise<unknown>,
): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
    await change();
  }
}
