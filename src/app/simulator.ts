import { isRelease, type Simulator, startProxmoxSimulator } from "../sim/index.ts";
import { systemClock, systemRandom } from "./system.ts";

/** A simulated Proxmox cluster on loopback, with its test hooks. */
export async function startSimulator(options: {
  readonly port: number;
  readonly version: string;
  readonly nodes: readonly string[];
  readonly dataFile: string | undefined;
}): Promise<Simulator> {
  const { port, version, nodes, dataFile } = options;
  if (!isRelease(version)) {
    throw new Error(`there is no simulated Proxmox ${version}: choose 7.4, 8.4 or 9.2`);
  }
  return await startProxmoxSimulator({
    port,
    version,
    clock: systemClock,
    random: systemRandom,
    hooks: true,
    ...(nodes.length > 0 ? { nodes } : {}),
    ...(dataFile === undefined ? {} : { dataFile }),
  });
}
