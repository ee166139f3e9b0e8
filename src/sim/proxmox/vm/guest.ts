import type { Cluster } from "../cluster.ts";
import type { GuestBehaviour } from "../state.ts";
import { findVolume } from "../storage/storages.ts";
import { bootOrder, agentIsEnabled } from "./hardware.ts";
import { isCdrom, parseDrive } from "./drive.ts";

const agentAfterMs = 5_000;

/**
 * What runs inside. A disk with an image on it boots an operating system that shuts down when asked
 * and, where the option is set, brings an agent; a blank disk boots nothing.
 */
export function guestOf(cluster: Cluster, node: string, vmid: number): GuestBehaviour | undefined {
  const config = cluster.readGuest(node, vmid);
  const hasSystem = bootOrder(config.main).some((key) => {
    const text = config.main.get(key);
    return text !== undefined && !key.startsWith("net") && holdsData(cluster, node, text);
  });
  if (!hasSystem) return undefined;
  const agent = agentIsEnabled(config) ? "running" : "absent";
  return { agent, agentAfterMs, obeysShutdown: true };
}

function holdsData(cluster: Cluster, node: string, text: string): boolean {
  const drive = parseDrive(text);
  if (isCdrom(drive) || !drive.file.includes(":")) return false;
  return findVolume(cluster, node, drive.file).volume?.data !== undefined;
}
