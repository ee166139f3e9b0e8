import { chosenIds } from "./people.ts";
import type { Site } from "./site.ts";
import { later, say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import { backingsOf, layVolume, type Pool } from "./strangers.ts";
import type { ListedRow } from "./wire.ts";

/** What Berth has seen, then something that hides it, then a start that remembers nothing. */
export function aroundRestarts(makers: TroubleMakers): Trouble[] {
  return [outage(makers), pauseAndRestart(makers)];
}

/** A rack without power: the hypervisor first, Berth with it, and a pool that comes back last. */
function outage(makers: TroubleMakers): Trouble {
  const { world } = makers;
  return {
    name: "outage, then restart",
    weight: 2,
    strike: () => {
      const { site, ...place } = declareOverPool(makers);
      later(makers, [4_000, 20_000], () => {
        const weather = world.weather.get(site.name);
        if (weather === undefined || world.isCalm) return;
        say(makers, site, "cannot be reached");
        weather.isCut = true;
        later(makers, [5_000, 45_000], () => restart(makers, { site, ...place }));
        later(makers, [46_000, 70_000], () => void (weather.isCut = false));
      });
    },
  };
}

/** A pause clears what a status says; then a start, while a pool is away as often as not. */
function pauseAndRestart(makers: TroubleMakers): Trouble {
  const { world, dice, people } = makers;
  return {
    name: "pause, then restart",
    weight: 2,
    strike: () => {
      const place = declareOverPool(makers);
      const paused = place.name ?? dice.pickAny(people.standing())?.metadata.name;
      later(makers, [4_000, 20_000], () => {
        if (paused === undefined || world.isCalm) return;
        people.pauseFor(paused, dice.between(10_000, 60_000));
        later(makers, [1_000, 9_000], () => restart(makers, place));
      });
    },
  };
}

interface Place {
  readonly site: Site;
  readonly pool: Pool;
  /** The ids of somebody's volumes on it. */
  readonly laid: readonly string[];
}

/** Mostly with somebody's volumes, on one pool only, under an id that is then chosen. */
function declareOverPool(makers: TroubleMakers): Place & { readonly name: string | undefined } {
  const { world, dice, people } = makers;
  const id = dice.pick(chosenIds);
  const declared = dice.chance(0.8) ? people.declare({ externalId: id }) : undefined;
  const site = world.sites.get(declared?.spec.hypervisorRef.name ?? "") ?? siteOf(makers);
  const pool = dice.pick<Pool>(["local-zfs", "local-zfs", "local-zfs", "shared", "local"]);
  const isFree = declared !== undefined && world.records.claimOf(site.name, id) === undefined;
  const nodes = isFree ? site.nodes : [];
  const laid = nodes.flatMap((node) => {
    return layVolume({ site, id }, { pool, node, what: "disk-0" }) ?? [];
  });
  if (laid.length > 0) say(makers, site, `somebody has the volume ${laid[0]}`);
  return { site, pool, laid, name: declared?.name };
}

/** Berth is killed and started again; the pool is not there yet when it is. */
function restart(makers: TroubleMakers, { site, pool, laid }: Place): void {
  const { world, dice } = makers;
  if (world.isCalm) return;
  const mount = dice.chance(0.7) ? hide(makers, site, laid) : unmount(site, pool);
  say(makers, site, `the storage ${pool} is not mounted`);
  for (const { life } of world.programs) life.die();
  makers.revive(dice.between(0, 3_000));
  later(makers, [60_000, 150_000], () => {
    mount();
    say(makers, site, `the storage ${pool} is mounted`);
  });
}

/** Nobody noticed: the folder is there, and empty. Answers what ends it. */
function hide({ world }: TroubleMakers, { name }: Site, laid: readonly string[]): () => void {
  const weather = world.weather.get(name);
  if (weather === undefined) return () => undefined;
  const isHidden = ({ volid = "" }: ListedRow): boolean => laid.includes(volid);
  weather.hidden = isHidden;
  return () => {
    if (weather.hidden === isHidden) weather.hidden = undefined;
  };
}

/** The hypervisor noticed: it says that the storage cannot be used. */
function unmount({ model, nodes }: Site, pool: Pool): () => void {
  const { offline } = model.faults;
  const backings = backingsOf(pool, nodes);
  for (const backing of backings) offline.add(backing);
  return () => {
    for (const backing of backings) offline.delete(backing);
  };
}
