import { leaseResource } from "../api/builtin/index.ts";
import { guardWrites, type Client } from "../client/index.ts";
import { ApiError } from "../kernel/status.ts";
import {
  createMetrics,
  Slots,
  startLeaderLease,
  type LeaderLease,
  type SlotView,
} from "../runtime/index.ts";
import { readCurrentClaims } from "./claims/index.ts";
import { startInformers, stopInformers, type Informers } from "./informers.ts";
import { prepareTerm } from "./prepare.ts";
import { createMeters, everyInformer } from "./meters.ts";
import type { ControllersOptions } from "./options.ts";
import type { Ground } from "./ground.ts";
import { Reign } from "./reign.ts";
import { slotLimit } from "./slot-limit.ts";

export { claimName } from "./claims/index.ts";
export type { Connect, Credentials, Place } from "./hypervisor/index.ts";
export type { ControllersOptions } from "./options.ts";
export { notAllowed, type Web, type WebFile } from "./vm-image/index.ts";

export interface RunningControllers {
  /** Who holds what and who waits for it, for people. */
  slots(): SlotView[];
  isLeader(): boolean;
  /** Finishes what is under way and lets go of the lease. Safe to repeat. */
  stop(): Promise<void>;
}

/** The Lease for which controllers contend. */
export const controllersLease = { namespace: "berth-system", name: "berth-controllers" } as const;

/**
 * Removes the Lease of a process that is dead: only where something else, as the lock of the data
 * folder, says that there is no other. What it had begun is settled by looking, as after any crash.
 */
export async function forgetLease(client: Client): Promise<void> {
  try {
    await client.of(leaseResource).delete(controllersLease);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "NotFound") throw error;
  }
}

/** A server may hold a request so long, on any hypervisor that we know. */
const graceMsDefault = 35_000;

/**
 * Starts the controllers: they contend for leadership, and work for as long as they have it. In one
 * process with the API or far from it, they know the Kubernetes API and nothing else.
 */
export function startControllers(options: ControllersOptions): RunningControllers {
  const { client, clock, random, identity = "berth", log } = options;
  const meters = createMeters(options.metrics ?? createMetrics(), clock);
  let term: Term | undefined;
  let terms = 0;
  const lease: LeaderLease = startLeaderLease({
    client,
    clock,
    random,
    identity,
    ...controllersLease,
    ...options.lease,
    graceMs: options.graceMs ?? graceMsDefault,
    whenAbsent: options.whenAbsent ?? "wait",
    onStarted: () => {
      log("info", "leads", { identity });
      meters.leads(true);
      terms += 1;
      term = startTerm({ options, lease, meters, number: terms });
    },
    onStopped: async () => {
      log("info", "leads no longer", { identity });
      meters.leads(false);
      await term?.stop();
      term = undefined;
    },
    onError: (error) => log("warn", "the lease could not be kept", { error: String(error) }),
  });
  return {
    slots: () => term?.slots.view() ?? [],
    isLeader: () => lease.isHeld(),
    stop: () => lease.stop(),
  };
}

/** What runs while we lead. */
interface Term {
  readonly slots: Slots;
  stop(): Promise<void>;
}

interface TermOptions extends Pick<Ground, "options" | "meters"> {
  readonly lease: LeaderLease;
  /** How many terms this process has had. */
  readonly number: number;
}

function startTerm({ options: given, lease, meters, number }: TermOptions): Term {
  // Who wakes up after its lease has passed to another must not touch the ledger with old news.
  const guarded = guardWrites(given.client, () => lease.isHeld());
  const { client, follow } = meters.timeWrites(readCurrentClaims(guarded));
  const options = { ...given, client };
  const { clock } = options;
  const stopping = new AbortController();
  const mayWrite = (): boolean => !stopping.signal.aborted && lease.mayWrite();
  const writableInMs = (): number => {
    return Math.max(0, (lease.safeAfterMs() ?? clock.monotonicMs()) - clock.monotonicMs());
  };
  const { identity } = lease;
  const isLeading = (): boolean => !stopping.signal.aborted && lease.isHeld();
  let informers: Informers | undefined;
  const limitOf = (name: string): number =>
    slotLimit(name, (key) => informers?.hypervisors.get(key));
  const slots = new Slots({ clock, limitOf });
  const stored = { ...given, client: guarded };
  const working = prepareTerm(stored, stopping.signal).then((prepared) => {
    if (prepared === undefined) return undefined;
    // Not before: a watch that began under the CRDs of an earlier release goes on dropping fields.
    const followed = startTermInformers(options);
    informers = followed;
    follow(followed);
    const uncount = meters.objects.follow(everyInformer(followed));
    const { installation, digestKey } = prepared;
    const { place } = options;
    const id = `${identity}.${number}`;
    const reign = new Reign({
      options,
      informers: followed,
      slots,
      installation,
      digestKey,
      identity,
      run: { installation, id, place, fence: { mayWrite: isLeading } },
      mayWrite,
      writableInMs,
      meters,
    });
    return { reign, uncount, informers: followed };
  });
  return {
    slots,
    stop: async () => {
      stopping.abort();
      const work = await working;
      work?.uncount();
      await work?.reign.stop();
      slots.stop();
      if (work !== undefined) await stopInformers(work.informers);
    },
  };
}

function startTermInformers({ client, clock, random, log }: ControllersOptions): Informers {
  const onError = (error: unknown, kind: string): void => {
    log("warn", "a kind cannot be followed", { kind, error: String(error) });
  };
  return startInformers({ client, clock, random, onError });
}
