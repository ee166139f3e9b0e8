import type { Random } from "../../kernel/random.ts";
import type { Release } from "../proxmox/index.ts";
import { cleanUpOf } from "./clean-end.ts";
import { Dice } from "./dice.ts";
import type { Forgetting } from "./program.ts";
import type { WorldOptions } from "./world.ts";

/** Far below what a seed may be, so that there is room for many after it. */
const firstSeedMost = 900_000_000;

/** Where and on what a seed's history takes place. */
export function settingOf(seed: number, listen: WorldOptions["listen"]): WorldOptions {
  const release = (of: string): Release => {
    return Dice.of(seed, `release ${of}`).pick(["8.4", "9.2", "9.2", "7.4"]);
  };
  return {
    seed,
    home: Dice.of(seed, "home").chance(0.7) ? "embedded" : "replicas",
    releases: { east: release("east"), west: release("west") },
    listen,
    cleanUp: cleanUpOf(seed),
    amnesia: amnesiaOf(seed),
    clocksAheadMs: { east: clockAheadOf(seed, "east"), west: clockAheadOf(seed, "west") },
  };
}

const clocksApartMs = 5 * 60_000;

/** "Node clocks differ": in a third of the histories, by seconds or by up to five minutes. */
function clockAheadOf(seed: number, site: string): number {
  if (!Dice.of(seed, "node clocks differ").chance(1 / 3)) return 0;
  const dice = Dice.of(seed, `node clocks differ ${site}`);
  const most = dice.pick([5_000, 30_000, clocksApartMs, clocksApartMs]);
  return dice.between(-most, most);
}

/** Most processes remember what they did; one in ten forgets it before half of its turns. */
function amnesiaOf(seed: number): Forgetting {
  const dice = Dice.of(seed, "amnesia");
  return dice.chance(0.8) ? "none" : dice.pick(["half", "all"]);
}

/** Where seeds begin when nobody says where: anywhere, so that no range is ever the proven one. */
export function anyFirstSeed(random: Random): number {
  return 1 + Math.floor(random.number() * firstSeedMost);
}
