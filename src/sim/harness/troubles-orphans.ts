import { Tidiers } from "./tidiers.ts";
import { later, say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { ListedRow } from "./wire.ts";

/** What happens around things that nothing declares, in histories in which they are deleted. */
export function aroundOrphans(makers: TroubleMakers): Trouble[] {
  const { world, people, dice } = makers;
  const tidiers = new Tidiers(world, people, dice);
  return [
    { name: "strip", weight: 8, isAlways: true, strike: () => tidiers.strip() },
    { name: "stop what is left", weight: 8, isAlways: true, strike: () => tidiers.stopLeft() },
    { name: "decide", weight: 8, isAlways: true, strike: () => tidiers.decide() },
    { name: "lose a Claim", weight: 2, strike: () => tidiers.loseClaim() },
    { name: "forget an Orphan", weight: 1, strike: () => tidiers.forgetAny() },
    hideFound(makers, tidiers),
    hideMachines(makers, tidiers),
  ];
}

/** Something that was found is not in any list for a while, as if a mount were missing. */
function hideFound(makers: TroubleMakers, tidiers: Tidiers): Trouble {
  const { world, dice } = makers;
  return {
    name: "hide what was found",
    weight: 4,
    strike: () => {
      const found = tidiers.open();
      const kept = found.filter(({ spec }) => spec.decision === "Keep");
      const { hypervisor, externalId } = (dice.pickAny(kept) ?? dice.pickAny(found))?.spec ?? {};
      const site = world.sites.get(hypervisor ?? "");
      if (site === undefined) return;
      hide(makers, site.name, ({ vmid, volid }) => {
        return volid === externalId || (volid === undefined && String(vmid) === externalId);
      });
      say(makers, site, `lists miss ${externalId}`);
    },
  };
}

/** Suddenly no machine is in the list; best of all where one could be deleted by policy. */
function hideMachines(makers: TroubleMakers, tidiers: Tidiers): Trouble {
  return {
    name: "hide every machine",
    weight: 3,
    strike: () => {
      const off = tidiers.left().filter(({ site, id }) => !site.isRunning(id));
      const site = makers.dice.pickAny(off)?.site ?? siteOf(makers);
      hide(makers, site.name, ({ type }) => type === "qemu");
      say(makers, site, "lists miss every machine");
    },
  };
}

/** For less than any grace time: what is away for longer counts as gone. */
function hide(makers: TroubleMakers, name: string, isHidden: (row: ListedRow) => boolean): void {
  const weather = makers.world.weather.get(name);
  if (weather === undefined) return;
  weather.hidden = isHidden;
  later(makers, [16_000, 50_000], () => {
    if (weather.hidden === isHidden) weather.hidden = undefined;
  });
}
