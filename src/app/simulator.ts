import { parseInventory } from "../drivers/proxmox/index.ts";
import {
  isRelease,
  nearestRelease,
  type Release,
  type Simulator,
  startProxmoxSimulator,
} from "../sim/index.ts";
import { isPresent } from "./data-folder.ts";
import { readIfPresent } from "./files.ts";
import { systemClock, systemRandom } from "./system.ts";

export interface StartSimulatorOptions {
  readonly port: number;
  /** Absent: that of the inventory, or else the newest. */
  readonly version: string | undefined;
  readonly nodes: readonly string[];
  readonly dataFile: string | undefined;
  /** The inventory of a cluster to be a twin of. */
  readonly from: string | undefined;
}

/** A simulated Proxmox cluster on loopback, with its test hooks. */
export async function startSimulator(options: StartSimulatorOptions): Promise<Simulator> {
  const { port, nodes, dataFile, from } = options;
  const inventory = from === undefined ? undefined : readInventory(from, dataFile);
  return await startProxmoxSimulator({
    port,
    version: releaseOf(options.version ?? nearestRelease(inventory?.release ?? "9.2")),
    clock: systemClock,
    random: systemRandom,
    hooks: true,
    ...(nodes.length > 0 ? { nodes } : {}),
    ...(inventory === undefined ? {} : { inventory }),
    ...(dataFile === undefined ? {} : { dataFile }),
  });
}

function releaseOf(version: string): Release {
  if (isRelease(version)) return version;
  throw new Error(`there is no simulated Proxmox ${version}: choose 7.4, 8.4 or 9.2`);
}

function readInventory(
  path: string,
  dataFile: string | undefined,
): ReturnType<typeof parseInventory> {
  if (dataFile !== undefined && isPresent(dataFile)) {
    throw new Error(`${dataFile} has a cluster already: leave --from out, or name another file`);
  }
  const text = readIfPresent(path);
  if (text === undefined) throw new Error(`there is no ${path}`);
  try {
    return parseInventory(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be used: ${why}`, { cause: error });
  }
}
