import { setImmediate } from "node:timers/promises";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import { ModelHypervisor } from "./model.ts";
import {
  createHypervisor,
  createVm,
  getVm,
  isReady,
  openWorld,
  until,
  type Incarnation,
  type World,
} from "./world.ts";

/** How a hypervisor is dead: it says so at once, or it says nothing until time is up. */
export type Death = "refuses" | "hangs";

/** Two hypervisors: `dead`, which can die with many machines on it, and `model`, which lives. */
export interface TwoClusters {
  readonly world: World;
  readonly run: Incarnation;
  readonly dead: ModelHypervisor;
  /** Calls that `dead` got, with the moment of each. */
  readonly callsMs: number[];
  die(how: Death): void;
  revive(): void;
}

/** As long as a driver waits for an answer before it gives up. */
const callTimeoutMs = 30_000;

export async function openTwoClusters(): Promise<TwoClusters> {
  const world = await openWorld();
  const { clock } = world;
  const dead = new ModelHypervisor(clock, "model-2");
  await createHypervisor(world.client, "dead");
  const callsMs: number[] = [];
  let death: Death | undefined;
  const slow = async <T>(make: () => Promise<T>): Promise<T> => {
    callsMs.push(clock.monotonicMs());
    if (death === "hangs") await new Promise<void>((end) => clock.after(callTimeoutMs, end));
    return make();
  };
  const run = world.start({
    tickMs: 10_000,
    connect: ({ metadata }) =>
      metadata.name === "dead" ? watched(dead.driver(), slow) : world.model.driver(),
  });
  const die = (how: Death | undefined): void => {
    death = how;
    dead.isAway = how !== undefined;
  };
  return { world, run, dead, callsMs, die, revive: () => die(undefined) };
}

/** Declares many machines on it, named m0, m1 and so on. */
export async function declareOnDead({ world }: TwoClusters, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const spec = { hypervisorRef: { name: "dead" }, source: { blank: {} }, disks: [] };
    await createVm(world.client, `m${index}`, spec);
    if (index % 50 === 49) await setImmediate();
  }
}

/** How long a new machine elsewhere takes until it is Ready, on the virtual clock. */
export async function elsewhereMs({ world }: TwoClusters, name: string): Promise<number> {
  const sinceMs = world.clock.monotonicMs();
  await createVm(world.client, name);
  const isThere = await until(world, async () => isReady(await getVm(world.client, name)));
  return isThere ? world.clock.monotonicMs() - sinceMs : Number.POSITIVE_INFINITY;
}

function watched(
  driver: HypervisorDriver,
  slow: <T>(make: () => Promise<T>) => Promise<T>,
): HypervisorDriver {
  return {
    ...driver,
    system: () => slow(() => driver.system()),
    inventory: () => slow(() => driver.inventory()),
    observe: (claim, hints) => slow(() => driver.observe(claim, hints)),
    propose: (avoid, first) => slow(() => driver.propose(avoid, first)),
    preflight: (draft) => slow(() => driver.preflight(draft)),
    begin: (operation, fence) => slow(() => driver.begin(operation, fence)),
    look: (task) => slow(() => driver.look(task)),
    recall: (claim, sinceMs, hints) => slow(() => driver.recall(claim, sinceMs, hints)),
    guest: (claim) => slow(() => driver.guest(claim)),
    leftovers: (claim) => slow(() => driver.leftovers(claim)),
  };
}
