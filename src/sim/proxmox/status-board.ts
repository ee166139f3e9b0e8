import type { Clock } from "../../kernel/clock.ts";
import { type GuestConfig, parseConfig } from "./config-file.ts";
import type { MachineState } from "./state.ts";
import type { Timing } from "./timing.ts";
import { bootDiskBytes, memoryBytes, vcpusOf } from "./vm/hardware.ts";

/** What the board looks at: the cluster, as far as it needs it. */
interface Observed {
  readonly clock: Clock;
  readonly timing: Timing;
  nodeOfGuest(vmid: number): string | undefined;
  guestText(node: string, vmid: number): string;
  readGuest(node: string, vmid: number): GuestConfig;
  machine(vmid: number): MachineState | undefined;
}

/** What pvestatd of a node last told the others about a guest. */
export interface BroadcastRow {
  readonly name: string;
  readonly status: "running" | "stopped";
  readonly maxcpu: number;
  readonly maxmem: number;
  readonly maxdisk: number;
  readonly template: number;
  readonly startedMs: number | undefined;
}

/** A guest at one moment. Most are never shown, so the row is made when one is. */
interface Sight {
  readonly text: string;
  readonly startedMs: number | undefined;
  row?: BroadcastRow;
}

interface Entry {
  shown: Sight | undefined;
  next: Sight | undefined;
  nextFromMs: number;
}

/**
 * The lag of /cluster/resources: a change is seen by the others with the next broadcast, up to ten
 * seconds later. No timer is needed for it, only the times of the changes.
 */
export class StatusBoard {
  readonly #cluster: Observed;
  readonly #entries = new Map<number, Entry>();
  /** A fault: what is shown does not change any more. */
  #frozenAtMs: number | undefined;

  constructor(cluster: Observed) {
    this.#cluster = cluster;
  }

  /** Something about the guest changed. */
  touch(vmid: number): void {
    const nowMs = this.#cluster.clock.nowMs();
    const entry = this.#entries.get(vmid) ?? { shown: undefined, next: undefined, nextFromMs: 0 };
    this.#entries.set(vmid, entry);
    settle(entry, nowMs);
    entry.next = this.#observe(vmid);
    const { broadcastMs } = this.#cluster.timing;
    entry.nextFromMs = Math.floor(nowMs / broadcastMs + 1) * broadcastMs;
  }

  forget(vmid: number): void {
    this.#entries.delete(vmid);
  }

  /** The last row that was broadcast; undefined for a guest that none has told of yet. */
  rowOf(vmid: number): BroadcastRow | undefined {
    const entry = this.#entries.get(vmid);
    if (entry === undefined) return undefined;
    settle(entry, this.#frozenAtMs ?? this.#cluster.clock.nowMs());
    const { shown } = entry;
    if (shown === undefined) return undefined;
    return (shown.row ??= broadcastRow(vmid, this.#configOf(vmid, shown), shown.startedMs));
  }

  /** From now on everything is stale, until it is thawed. */
  freeze(): void {
    this.#frozenAtMs = this.#cluster.clock.nowMs();
  }

  thaw(): void {
    this.#frozenAtMs = undefined;
  }

  #observe(vmid: number): Sight | undefined {
    const node = this.#cluster.nodeOfGuest(vmid);
    if (node === undefined) return undefined;
    const text = this.#cluster.guestText(node, vmid);
    return { text, startedMs: this.#cluster.machine(vmid)?.startedMs };
  }

  /** The file as it was seen; mostly it is still the same, and has been read already. */
  #configOf(vmid: number, { text }: Sight): GuestConfig {
    const node = this.#cluster.nodeOfGuest(vmid);
    const isSame = node !== undefined && this.#cluster.guestText(node, vmid) === text;
    return isSame ? this.#cluster.readGuest(node, vmid) : parseConfig(text);
  }
}

function settle(entry: Entry, nowMs: number): void {
  if (entry.next === undefined || entry.nextFromMs > nowMs) return;
  entry.shown = entry.next;
  entry.next = undefined;
}

function broadcastRow(
  vmid: number,
  config: GuestConfig,
  startedMs: number | undefined,
): BroadcastRow {
  return {
    name: config.main.get("name") ?? `VM ${vmid}`,
    status: startedMs === undefined ? "stopped" : "running",
    maxcpu: vcpusOf(config),
    maxmem: memoryBytes(config),
    maxdisk: bootDiskBytes(config),
    template: config.main.get("template") === "1" ? 1 : 0,
    startedMs,
  };
}
