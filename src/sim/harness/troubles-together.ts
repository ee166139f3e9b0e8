import { chosenIds } from "./people.ts";
import { later, say, siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";

/** What could come together by chance, and would hardly ever. */
export function together(makers: TroubleMakers): Trouble[] {
  return [
    clearUp(makers),
    declareOver(makers),
    regret(makers),
    moveUnheard(makers),
    noWorkerUnheard(makers),
  ];
}

/** Somebody removes a machine by hand, leaves something in its place, and deletes its object. */
function clearUp(makers: TroubleMakers): Trouble {
  const { world, dice, people, hands } = makers;
  return {
    name: "clear up by hand",
    weight: 2,
    strike: () => {
      const found = hands.takeAway();
      if (found === undefined) return;
      const { name } = world.records.claimOf(found.site.name, found.id)?.spec.owner ?? {};
      if (dice.chance(0.7)) hands.leaveVolumeBehind(found);
      if (name !== undefined) later(makers, [0, 20_000], () => people.delete(name));
    },
  };
}

/** An id is chosen under which somebody left volumes long ago. */
function declareOver({ world, dice, people, hands }: TroubleMakers): Trouble {
  return {
    name: "declare over volumes",
    weight: 1,
    strike: () => {
      const id = dice.pick(chosenIds);
      const { spec } = people.declare({ externalId: id }) ?? {};
      const site = world.sites.get(spec?.hypervisorRef.name ?? "");
      if (site !== undefined) hands.leaveVolumesUnder({ site, id });
    },
  };
}

/** Somebody declares a machine and deletes it, before its Claim is in anybody's list. */
function regret(makers: TroubleMakers): Trouble {
  const { world, people } = makers;
  return {
    name: "regret",
    weight: 1,
    strike: () => {
      const declared = people.declare();
      if (declared === undefined) return;
      world.trace.say("weather", () => "watches of Claims are late");
      for (const weather of world.apiWeather) {
        Object.assign(weather, { lagMs: 10_000, lagsOnly: "/claims" });
        world.clock.after(8_000, () => void Object.assign(weather, { lagMs: 0 }));
      }
      later(makers, [200, 6_000], () => people.delete(declared.name));
    },
  };
}

/** A machine is elsewhere, and half of what is asked about it has no answer. */
function moveUnheard(makers: TroubleMakers): Trouble {
  const { world, dice, hands } = makers;
  return {
    name: "move a machine unheard",
    weight: 1,
    strike: () => {
      const site = hands.moveMachine()?.site;
      const weather = world.weather.get(site?.name ?? "");
      if (site === undefined || weather === undefined) return;
      say(makers, site, "replies are lost");
      weather.loseReply = dice.pick([0.3, 0.6]);
      later(makers, [5_000, 40_000], () => void (weather.loseReply = 0));
    },
  };
}

/** Nothing but the empty reservation is left of a request, and who sent it does not hear why. */
function noWorkerUnheard(makers: TroubleMakers): Trouble {
  const { world } = makers;
  return {
    name: "no worker, unheard",
    weight: 1,
    strike: () => {
      const site = siteOf(makers);
      const weather = world.weather.get(site.name);
      if (weather === undefined) return;
      say(makers, site, "the next worker cannot be started, and replies are lost");
      site.model.faults.onRequest({
        kind: "noWorker",
        matches: ({ method, path }) => method === "POST" && path.endsWith("/qemu"),
      });
      weather.loseReply = 0.7;
      later(makers, [5_000, 30_000], () => void (weather.loseReply = 0));
    },
  };
}
