import { answered, failed, taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { readFailureOf } from "./errors.ts";
import type { PveApi } from "./wire/api.ts";
import { nodeOf, pathPart, type Send } from "./wire/wire.ts";

/** Short enough that a clock that was set is noticed before the window of an operation ends. */
const freshMs = 30_000;
/** A node tells whole seconds: of its time, and of the start of a task. */
const wholeSecondMs = 1_000;
/** How long the reply may take that tells a clock: what is left of the slack. */
const roundTripMaxMs = taskTimeSlackMs - 2 * wholeSecondMs;

/** A node's time minus the monotonic clock here lies between these two. */
interface Reading {
  readonly atMs: number;
  readonly leastMs: number;
  readonly mostMs: number;
}

export interface Offset {
  readonly aheadMs: number;
  readonly withinMs: number;
}

/**
 * How far the clocks of the nodes are ahead of Berth's. The start of a task is on the clock of the
 * node that runs its worker, and so is what its lists say. The header Date is not: pveproxy writes
 * its own time also on replies that another node gave (pve-http-server, AnyEvent.pm, response). So
 * the node itself is asked, only where times of tasks are compared, and again after 30 s.
 *
 * Nothing is kept beyond the process. What cannot be learned is a failure, and no time is given.
 */
export class NodeClocks {
  readonly #clock: Clock;
  readonly #known = new Map<string, Reading>();
  readonly #asked = new Map<string, Promise<Answer<Reading>>>();
  /** When the last question for a node's time left, and when its reply came. */
  readonly #trips = new Map<string, { readonly sentMs: number; readonly backMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Measures below the limit of calls: the time in its queue says nothing about the clock. */
  timed(send: Send): Send {
    return async (request) => {
      if (!/^\/nodes\/[^/]+\/time$/.test(request.path)) return await send(request);
      const sentMs = this.#clock.monotonicMs();
      const reply = await send(request);
      this.#trips.set(nodeOf(request.path) ?? "", { sentMs, backMs: this.#clock.monotonicMs() });
      return reply;
    };
  }

  /** How far a node's clock is ahead of Berth's now; below 0, behind. 0 where they may agree. */
  async aheadMs(api: PveApi, node: string): Promise<Answer<number>> {
    const offset = await this.offset(api, node);
    return offset.ok ? answered(offset.value.aheadMs) : offset;
  }

  /** The same, and how much later a task may have begun than its converted start says. */
  async offset(api: PveApi, node: string): Promise<Answer<Offset>> {
    const known = this.#known.get(node);
    const isFresh = known !== undefined && this.#clock.monotonicMs() - known.atMs < freshMs;
    const reading = isFresh ? answered(known) : await this.#ask(api, node);
    if (!reading.ok) return reading;
    // By what the clock here says now: it may have been set since.
    const hereMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    const { leastMs, mostMs } = reading.value;
    const aheadMs = Math.round(Math.min(Math.max(0, leastMs - hereMs), mostMs - hereMs));
    return answered({ aheadMs, withinMs: aheadMs - (leastMs - hereMs) + wholeSecondMs });
  }

  /** One question at a time to each node. */
  async #ask(api: PveApi, node: string): Promise<Answer<Reading>> {
    const asked = this.#asked.get(node) ?? this.#read(api, node);
    this.#asked.set(node, asked);
    try {
      return await asked;
    } finally {
      if (this.#asked.get(node) === asked) this.#asked.delete(node);
    }
  }

  async #read(api: PveApi, node: string): Promise<Answer<Reading>> {
    const attempted = `read the clock of ${node}`;
    const result = await api.get(`/nodes/${pathPart(node)}/time`);
    if (result.type !== "data") return failed(readFailureOf(result, attempted));
    const seconds = isJsonObject(result.data) ? result.data["time"] : undefined;
    const trip = this.#trips.get(node);
    if (typeof seconds !== "number" || trip === undefined) {
      return failed({ category: "NodeUnhealthy", message: `${node} does not tell its time` });
    }
    const tookMs = trip.backMs - trip.sentMs;
    if (!guard("node-clock-precise", tookMs <= roundTripMaxMs)) {
      const took = `${Math.round(tookMs / 1000)} s`;
      const message = `the clock of ${node} cannot be read well enough: its reply took ${took}`;
      return failed({ category: "NodeUnhealthy", message });
    }
    const timeMs = seconds * 1000;
    const leastMs = timeMs - trip.backMs;
    const mostMs = timeMs + wholeSecondMs - trip.sentMs;
    const reading = { atMs: trip.backMs, leastMs, mostMs };
    this.#known.set(node, reading);
    return answered(reading);
  }
}
