import type { Dice } from "./dice.ts";
import type { Found } from "./hands-volumes.ts";
import { isProvable } from "./provable.ts";
import type { Site } from "./site.ts";
import { say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { World } from "./world.ts";

/** The storages on which disks of machines may lie. */
export type Pool = "local-zfs" | "local" | "shared";

interface Where {
  readonly pool: Pool;
  readonly node: string;
  /** What stands behind the id in its name, as "rescue" or "disk-7". */
  readonly what: string;
}

/** People who make volumes by hand under ids that are Berth's: theirs they are all the same. */
export function byStrangers(makers: TroubleMakers): Trouble[] {
  return [{ name: "make a volume by hand", weight: 3, strike: () => makeVolume(makers) }];
}

/**
 * A volume of a person's own under the id of a machine: of one that is to come, that is being made
 * or that is there; sometimes also entered into its configuration, as `qm rescan` does.
 */
function makeVolume(makers: TroubleMakers): void {
  const { world, dice } = makers;
  const site = siteOf(makers);
  const id = anyId(world, site, dice);
  const where = anyWhere(world, { site, id }, dice);
  const isAttached = dice.chance(0.3);
  if (isNamed(world, { site, id }, where)) return;
  const laid = layVolume({ site, id }, where);
  if (laid === undefined) return;
  say(makers, site, `somebody makes the volume ${laid} by hand`);
  const isAt = where.node === site.model.cluster.nodeOfGuest(Number(id));
  if (isAttached && (isAt || where.pool === "shared")) attach(makers, { site, id }, laid);
}

/** Mostly where the VM is, or is to be. */
function anyWhere({ records }: World, { site, id }: Found, dice: Dice): Where {
  const planned = records.claimOf(site.name, id)?.spec.node ?? "pve1";
  const home = site.model.cluster.nodeOfGuest(Number(id)) ?? planned;
  return {
    pool: dice.pick<Pool>(["local-zfs", "local-zfs", "local-zfs", "shared", "local"]),
    node: dice.chance(0.8) ? home : dice.pick(["pve1", "pve2"]),
    what: dice.pick(["rescue", "disk-7", "disk-1", `rescue-${dice.between(1, 9)}`]),
  };
}

/** One with the very name that the Claim knows could not be told from Berth's by anybody. */
function isNamed({ records }: World, { site, id }: Found, { pool, node, what }: Where): boolean {
  const claim = records.claimOf(site.name, id)?.spec ?? {};
  const [backing = ""] = backingsOf(pool, [node]);
  return isProvable(claim, { backing, name: nameOn(pool, id, what) });
}

/** An id that Berth holds, whatever for; or one that it may choose next. */
function anyId({ records }: World, { name }: Site, dice: Dice): string {
  const held = [...records.claims.values()]
    .filter(({ spec }) => spec.hypervisor.name === name && spec.state !== "Quarantined")
    .map(({ spec }) => spec.externalId);
  const coming = Array.from({ length: 24 }, (_, index) => String(100 + index)).find((id) => {
    return records.claimOf(name, id) === undefined;
  });
  const next = dice.pick([coming ?? "300", coming ?? "301", "300", "301"]);
  return dice.chance(0.25) ? next : (dice.pickAny(held) ?? next);
}

/** Where the bytes of a storage are, as the model names it; see `backingOf` there. */
export function backingsOf(pool: Pool, nodes: readonly string[]): string[] {
  if (pool === "shared") return ["shared:192.0.2.2:/export/shared"];
  const place = pool === "local" ? "/var/lib/vz" : "rpool/data";
  return nodes.map((node) => `${node}:${place}`);
}

/** Puts a volume of a person's there; its id, or nothing if there is one of that name. */
export function layVolume({ site, id }: Found, { pool, node, what }: Where): string | undefined {
  const [backing = ""] = backingsOf(pool, [node]);
  const name = nameOn(pool, id, what);
  const { volumes: backings } = site.model.cluster.state;
  const volumes = backings[backing] ?? [];
  backings[backing] = volumes;
  if (volumes.some((volume) => volume.name === name)) return undefined;
  const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: site.clock.nowMs() };
  const format = pool === "local-zfs" ? "raw" : "qcow2";
  volumes.push({ name, content: "images", format, vmid: Number(id), ...sizes });
  site.volumes.set(`${backing}/${name}`, { by: "person", uid: undefined });
  site.touched(id);
  return `${pool}:${name}`;
}

function nameOn(pool: Pool, id: string, what: string): string {
  const name = `vm-${id}-${what}`;
  return pool === "local-zfs" ? name : `${id}/${name}.qcow2`;
}

/** Not while somebody works on the machine, or holds it. */
function attach(makers: TroubleMakers, { site, id }: Found, volume: string): void {
  const { cluster } = site.model;
  const text = site.text(id) ?? "";
  const node = cluster.nodeOfGuest(Number(id));
  const isUnderWay = (makers.world.wires.get(site.name)?.effects.get(id) ?? 0) > 0;
  const isBusy = isUnderWay || site.isWorkedOn(id) || !cluster.isQuorate();
  if (node === undefined || isBusy || /^\[|^lock:|^unused5:/m.test(text)) return;
  enterUnused({ site, id }, volume);
  say(makers, site, `somebody enters it into ${id} as unused`);
}

/** The VM stays whose it was. One that a person made under the id may look so from here on. */
export function enterUnused({ site, id }: Found, volume: string): void {
  const file = site.model.cluster.state.guests[id];
  if (file === undefined) return;
  site.model.writeGuestFile(file.node, Number(id), `${file.text}unused5: ${volume}\n`);
  if (site.guests.get(id)?.by === "person") site.personActed(id);
  site.touched(id);
}
