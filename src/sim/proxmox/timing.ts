import type { Random } from "../../kernel/random.ts";

/** How long things take, and how long Proxmox waits for them. All in milliseconds. */
export interface Timing {
  /** Between two effects of a worker. */
  readonly stepMs: number;
  /** Making an empty volume. */
  readonly allocateMs: number;
  /** Copying data, per GiB. */
  readonly copyPerGibMs: number;
  readonly startMs: number;
  readonly stopMs: number;
  /** How often pvestatd tells the other nodes how the guests are. */
  readonly broadcastMs: number;
  /** A refused credential is answered late. */
  readonly refusalMs: number;
  /** How long pveproxy waits for a node or for pvedaemon. */
  readonly proxyLimitMs: number;
  /** How long a silent guest agent holds its caller up. */
  readonly agentStallMs: number;
}

export const realTiming: Timing = {
  stepMs: 8,
  allocateMs: 60,
  copyPerGibMs: 400,
  startMs: 400,
  stopMs: 200,
  broadcastMs: 10_000,
  refusalMs: 3_000,
  proxyLimitMs: 30_000,
  agentStallMs: 3_000,
};

/** A duration as it varies from time to time: half to one and a half of what it is on average. */
export function varied(random: Random, durationMs: number): number {
  return durationMs <= 0 ? 0 : Math.max(1, Math.round(durationMs * (0.5 + random.number())));
}
