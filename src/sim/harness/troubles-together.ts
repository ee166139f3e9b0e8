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

/** A machine is elsewhere, somebody asks for a look, and one of the questions has no answer. */
function moveUnheard(makers: TroubleMakers): Trouble {
  const { world, dice, people, hands } = makers;
  return {
    name: "move a machine unheard",
    weight: 2,
    strike: () => {
      const { site } = hands.moveMachine(true) ?? hands.moveMachine(true) ?? {};
      const weather = world.weather.get(site?.name ?? "");
      if (site === undefined || weather === undefined) return;
      const path = dice.pick(["/cluster/nextid", "/cluster/nextid", "/cluster/status"]);
      say(makers, site, `${path} has no answer`);
      weather.unanswered = path;
      people.retryAll();
      later(makers, [10_000, 60_000], () => void (weather.unanswered = undefined));
    },
  };
}

/** Nothing but the empty reservation is left of a request, and who sent it does not hear why. */
function noWorkerUnheard(makers: TroubleMakers): Trouble {
  const { world, people } = makers;
  return {
    name: "no worker, unheard",
    weight: 1,
    strike: () => {
      const { spec } = people.declare() ?? {};
      if (spec === undefined) people.declareAnew();
      const site = world.sites.get(spec?.hypervisorRef.name ?? "") ?? siteOf(makers);
      const weather = world.weather.get(site.name);
      if (weather === undefined) return;
      say(makers, site, "the next creation has no worker, and its reply is lost");
      site.model.faults.onRequest({
        kind: "noWorker",
        matches: ({ method, path }) => {
          if (method !== "POST" || !path.endsWith("/qemu")) return false;
          weather.loseReply = 1;
          world.clock.after(50, () => void (weather.loseReply = 0));
          return true;
        },
      });
    },
  };
}
