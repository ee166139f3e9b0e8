import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test } from "node:test";
import fc from "fast-check";
import { createClient, type Transport } from "../client/index.ts";
import type { Cancel, Clock } from "../kernel/clock.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { Random } from "../kernel/random.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { WireResponse } from "../kernel/wire.ts";
import { startLeaderLease, type LeaderLease } from "./leader-lease.ts";
import { FakeApi, seededRandom } from "./testing.ts";

const graceMs = 3_000;
/** No clock is off by more: 15 s of the fastest are longer than 10 s of the slowest. */
const driftMax = 0.07;

/** A contender's machine: its own clocks, which drift and jump, its pauses, its crash. */
class Machine implements Clock {
  isPaused = false;
  isCrashed = false;
  wallOffsetMs = 0;
  readonly bootId = "test";
  readonly #base: VirtualClock;
  readonly #rate: number;
  #deferred: (() => void)[] = [];

  constructor(base: VirtualClock, rate: number) {
    this.#base = base;
    this.#rate = rate;
  }

  nowMs(): number {
    return this.#base.nowMs() + this.wallOffsetMs;
  }

  monotonicMs(): number {
    return 5_000 + this.#base.monotonicMs() * this.#rate;
  }

  after(delayMs: number, callback: () => void): Cancel {
    let isCancelled = false;
    const cancel = this.#base.after(delayMs / this.#rate, () => {
      this.deliver(() => void (isCancelled || callback()));
    });
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** What comes in while the machine is paused waits; once it crashed, for ever. */
  deliver(callback: () => void): void {
    if (this.isCrashed) return;
    if (this.isPaused) this.#deferred.push(callback);
    else callback();
  }

  resume(): void {
    this.isPaused = false;
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const callback of deferred) this.deliver(callback);
  }
}

interface Contender {
  readonly machine: Machine;
  readonly lease: LeaderLease;
}

class World {
  readonly base = new VirtualClock();
  readonly api = new FakeApi();
  readonly trace: string[] = [];
  readonly contenders: Contender[] = [];
  isCalm = false;
  terms = 0;
  /** Who might write last, and when that was. */
  #last: { lease: LeaderLease; atMs: number } | undefined;
  readonly #random: Random;

  constructor(seed: number, count: number) {
    this.#random = seededRandom(seed);
    for (let i = 0; i < count; i++) this.join();
  }

  chance(probability: number): boolean {
    return this.#random.number() < probability;
  }

  upTo(most: number): number {
    return this.#random.number() * most;
  }

  pick(): Contender {
    const contender = this.contenders[Math.floor(this.upTo(this.contenders.length))];
    assert(contender);
    return contender;
  }

  join(): void {
    const machine = new Machine(this.base, 1 + driftMax * (2 * this.#random.number() - 1));
    const lease = startLeaderLease({
      client: createClient({ transport: this.#transport(machine), clock: machine }),
      clock: machine,
      random: this.#random,
      namespace: "berth-system",
      name: "controllers",
      identity: `c${this.contenders.length}`,
      graceMs,
      onStarted: () => this.tell(`${lease.identity.slice(0, 6)} started`),
      onStopped: () => this.tell(`${lease.identity.slice(0, 6)} stopped`),
    });
    this.contenders.push({ machine, lease });
  }

  tell(what: string): void {
    this.trace.push(`${(this.base.monotonicMs() / 1000).toFixed(2)} ${what}`);
  }

  /** The law: at most one, and between two of them at least the grace. */
  check(): void {
    const writers = this.contenders.filter(({ machine, lease }) => {
      return !machine.isCrashed && lease.mayWrite();
    });
    assert(writers.length <= 1, `two may write at once\n${this.trace.join("\n")}`);
    const [writer] = writers;
    if (writer === undefined) return;
    const nowMs = this.base.monotonicMs();
    if (this.#last !== undefined && this.#last.lease !== writer.lease) {
      const gapMs = nowMs - this.#last.atMs;
      const needMs = graceMs / (1 + driftMax);
      assert(gapMs >= needMs, `only ${gapMs} ms between two\n${this.trace.join("\n")}`);
    }
    if (this.#last?.lease !== writer.lease) this.terms += 1;
    this.#last = { lease: writer.lease, atMs: nowMs };
  }

  async run(ms: number): Promise<void> {
    const endMs = this.base.monotonicMs() + ms;
    while (this.base.monotonicMs() < endMs) {
      this.base.advance(Math.min(250, this.base.nextInMs() ?? 250));
      this.check();
      await setImmediate();
      await setImmediate();
      this.check();
    }
  }

  #transport(machine: Machine): Transport {
    return (request) => {
      const { promise, resolve, reject } = Promise.withResolvers<WireResponse>();
      const isFaulty = !this.isCalm && this.chance(0.35);
      const isLate = isFaulty && this.chance(0.3);
      const thereMs = this.upTo(isLate ? 40_000 : 300);
      const backMs = this.upTo(isFaulty ? 4_000 : 300);
      const fault = isFaulty ? Math.floor(this.upTo(5)) : -1;
      // The request is never delivered.
      if (fault === 0) return promise;
      this.base.after(thereMs, () => {
        if (fault === 1) {
          const body = new TextEncoder().encode("{}");
          return machine.deliver(() => resolve({ status: 503, headers: {}, body }));
        }
        const response = this.api.handle(request);
        // The reply is lost, the connection breaks, or the server does not know itself.
        if (fault === 2) return;
        this.base.after(backMs, () => {
          machine.deliver(() => {
            if (fault === 3) reject(new Error("connection reset"));
            else resolve(fault === 4 ? { ...response, status: 500 } : response);
          });
        });
      });
      return promise;
    };
  }
}

/** Something bad happens to somebody. */
function disturb(world: World): void {
  const contender = world.pick();
  const { machine, lease } = contender;
  const name = lease.identity.slice(0, 6);
  const kind = Math.floor(world.upTo(8));
  world.tell(`disturbance ${kind} at ${name}`);
  if (kind <= 2) {
    machine.isPaused = true;
    world.base.after(world.upTo(40_000), () => machine.resume());
  } else if (kind === 3) {
    machine.isCrashed = true;
    world.contenders.splice(world.contenders.indexOf(contender), 1);
    world.join();
  } else if (kind === 4) {
    void lease.stop();
    world.join();
  } else if (kind === 5) {
    machine.wallOffsetMs += world.upTo(100_000) - 50_000;
  } else if (kind === 6) {
    world.api.objects.clear();
  } else {
    clearHolder(world.api);
  }
}

let edits = 0;

/** A person frees the lease by hand, under whoever holds it. */
function clearHolder(api: FakeApi): void {
  for (const [path, lease] of api.objects) {
    const { spec, metadata } = lease;
    if (spec === undefined || metadata === undefined || !isJsonObject(spec)) continue;
    if (!isJsonObject(metadata)) continue;
    const edited = { ...metadata, resourceVersion: `edited-${edits++}` };
    api.objects.set(path, { ...lease, metadata: edited, spec: { ...spec, holderIdentity: "" } });
  }
}

for (const count of [2, 3]) {
  test(`of ${count} contenders never two may write at once, whatever happens`, async () => {
    let terms = 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1 }), async (seed) => {
        const world = new World(seed, count);
        for (let i = 0; i < 12; i++) {
          await world.run(world.upTo(30_000));
          if (world.chance(0.7)) disturb(world);
        }
        // When the faults end, somebody leads and goes on leading.
        world.isCalm = true;
        await world.run(120_000);
        const writers = world.contenders.filter(({ lease }) => lease.mayWrite());
        assert.equal(writers.length, 1, `nobody leads\n${world.trace.join("\n")}`);
        terms += world.terms;
      }),
      // A holder that let go before it might write once made the next one forget to wait.
      { numRuns: 25, examples: count === 3 ? [[990812914]] : [] },
    );
    assert(terms > 50, `the lease went from hand to hand (${terms} times)`);
  });
}
