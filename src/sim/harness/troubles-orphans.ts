import { Tidiers } from "./tidiers.ts";
import { later, say, type Trouble, type TroubleMakers } from "./trouble.ts";
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
    keepAndHide(makers, tidiers),
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

/** Somebody keeps a machine and switches it off; then no list has it for a sweep. */
function keepAndHide(makers: TroubleMakers, tidiers: Tidiers): Trouble {
  return {
    name: "keep and hide",
    weight: 4,
    isAlways: true,
    strike: () => {
      tidiers.whenFound((left) => {
        const { site, id } = left;
        tidiers.keep(left);
        later(makers, [3_000, 6_000], () => tidiers.stop(left));
        later(makers, [7_000, 20_000], () => {
          hide(makers, site.name, ({ vmid, volid }) => volid === undefined && String(vmid) === id);
          say(makers, site, `lists miss ${id}`);
        });
      });
    },
  };
}

/** Suddenly no machine is in the list, where one is switched off that the policy may delete. */
function hideMachines(makers: TroubleMakers, tidiers: Tidiers): Trouble {
  return {
    name: "hide every machine",
    weight: 4,
    strike: () => {
      tidiers.whenFound((left) => {
        hide(makers, left.site.name, ({ type }) => type === "qemu");
        say(makers, left.site, "lists miss every machine");
        later(makers, [0, 20_000], () => tidiers.stop(left));
      });
    },
  };
}

/** For a sweep or two: what is away for ten minutes counts as gone. */
function hide(makers: TroubleMakers, name: string, isHidden: (row: ListedRow) => boolean): void {
  const weather = makers.world.weather.get(name);
  if (weather === undefined || makers.world.isCalm) return;
  weather.hidden = isHidden;
  later(makers, [16_000, 80_000], () => {
    if (weather.hidden === isHidden) weather.hidden = undefined;
  });
}
