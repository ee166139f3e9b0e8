import type { Program } from "./program.ts";
import { later, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { World } from "./world.ts";

/** What goes wrong with Berth itself, and between it and its API. */
export function toBerth(makers: TroubleMakers): Trouble[] {
  const common = [
    crash(makers),
    changeMind(makers),
    oldNews(makers),
    brokenWatches(makers),
    doubledNews(makers),
    fullDisk(makers),
    takeKinds(makers),
  ];
  if (makers.world.home === "embedded") return common;
  return [...common, sleep(makers), nap(makers), loseApi(makers), loseApiReplies(makers)];
}

/** The one that leads, most of the time. */
function anyProgram({ world, dice }: TroubleMakers): Program | undefined {
  const leader = world.programs.find((program) => program.isLeader());
  return dice.chance(0.8) ? leader : dice.pickAny(world.programs);
}

function apiForAWhile(
  { world, dice }: TroubleMakers,
  what: string,
  set: (weather: World["apiWeather"][number], isOn: boolean) => void,
): () => void {
  return () => {
    const weather = dice.pickAny(world.apiWeather);
    if (weather === undefined) return;
    world.trace.say("weather", () => what);
    set(weather, true);
    world.clock.after(dice.between(500, 30_000), () => set(weather, false));
  };
}

function crash(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "crash",
    weight: 8,
    strike: () => {
      const life = anyProgram(makers)?.life;
      if (life === undefined) return;
      life.doom = { callsLeft: dice.between(1, 60), when: dice.pick(["before", "after"]) };
    },
  };
}

function changeMind(makers: TroubleMakers): Trouble {
  const { world, dice, people } = makers;
  return {
    // The worst moment: a request is on its way, its sender dies or is told that it was lost, and
    // what it is about is deleted.
    name: "change one's mind",
    weight: 3,
    strike: () => {
      const life = anyProgram(makers)?.life;
      if (life === undefined) return;
      const dies = dice.chance(0.6);
      const told = dies ? "and the next sender dies" : "and their senders live";
      world.trace.say("weather", () => `whatever is sent arrives late, ${told}`);
      for (const weather of world.weather.values()) {
        weather.late = 1;
        world.clock.after(3_000, () => void (weather.late = 0));
      }
      if (dies) life.doom = { callsLeft: 1, when: "after", onlyEffects: true };
      const reviveMs = dice.between(0, 500);
      world.clock.after(3_100, () => {
        if (dies && !life.isDead) return;
        for (const name of underWay(world)) people.delete(name);
        makers.revive(reviveMs);
      });
    },
  };
}

function oldNews(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "old news",
    weight: 2,
    strike: apiForAWhile(makers, "watches are late", (weather, isOn) => {
      weather.lagMs = isOn ? dice.pick([50, 1_000, 10_000]) : 0;
      // Each kind has a watch of its own, so what one tells may be older than what another does.
      weather.lagsOnly = isOn ? dice.pick([undefined, "/claims", "/virtualmachines"]) : undefined;
    }),
  };
}

function brokenWatches(makers: TroubleMakers): Trouble {
  return {
    name: "broken watches",
    weight: 1,
    strike: apiForAWhile(makers, "watches break", (weather, isOn) => {
      weather.isBroken = isOn;
    }),
  };
}

function doubledNews(makers: TroubleMakers): Trouble {
  return {
    name: "doubled news",
    weight: 1,
    strike: apiForAWhile(makers, "watches tell everything twice", (weather, isOn) => {
      weather.isDoubled = isOn;
    }),
  };
}

function fullDisk(makers: TroubleMakers): Trouble {
  const { world, dice } = makers;
  return {
    name: "full disk",
    weight: 1,
    strike: () => {
      world.trace.say("weather", () => "the API's disk is full");
      world.house.disk.setFault("full");
      world.clock.after(dice.between(500, 20_000), () => world.house.disk.setFault(undefined));
    },
  };
}

/** Somebody deletes the kinds: their objects go, and with them no machine may. */
function takeKinds(makers: TroubleMakers): Trouble {
  const { world, dice, people } = makers;
  return {
    name: "take the kinds away",
    weight: 1,
    strike: () => {
      if (world.kindsGoSinceMs !== undefined) return;
      world.trace.say("weather", () => "the kinds are being deleted");
      world.kindsGoSinceMs = world.clock.monotonicMs();
      world.clock.after(
        dice.between(10_000, 60_000),
        () => void (world.kindsGoSinceMs = undefined),
      );
      const going = people.standing().filter(() => dice.chance(0.4));
      for (const { metadata } of going) {
        later(makers, [0, 8_000], () => people.delete(metadata.name ?? ""));
      }
    },
  };
}

function sleep(makers: TroubleMakers): Trouble {
  const { world, dice } = makers;
  return {
    name: "sleep",
    weight: 2,
    strike: () => {
      const program = anyProgram(makers);
      const ms = dice.between(1_000, 90_000);
      world.trace.say("weather", () => `${program?.name} is stopped for ${ms} ms`);
      program?.life.sleep(ms);
    },
  };
}

/** The worst moment for a leader to be stopped: when it wakes, another one leads. */
function nap(makers: TroubleMakers): Trouble {
  const { world, dice } = makers;
  return {
    name: "stop before sending",
    weight: 3,
    strike: () => {
      const program = anyProgram(makers);
      if (program === undefined) return;
      program.life.napMs = dice.pick([10_000, 50_000, 80_000]);
      world.trace.say("weather", () => `${program.name} will be stopped before it sends`);
    },
  };
}

function loseApi(makers: TroubleMakers): Trouble {
  return {
    name: "lose the API",
    weight: 1,
    strike: apiForAWhile(makers, "a program cannot reach the API", (weather, isOn) => {
      weather.isCut = isOn;
    }),
  };
}

function loseApiReplies(makers: TroubleMakers): Trouble {
  const { dice } = makers;
  return {
    name: "lose the API's replies",
    weight: 2,
    strike: apiForAWhile(makers, "replies of the API are lost", (weather, isOn) => {
      weather.loseReply = isOn ? dice.pick([0.1, 0.5]) : 0;
    }),
  };
}

/** The objects about whose machines a request is on its way. */
function underWay({ wires, records }: World): string[] {
  return [...wires].flatMap(([site, { effects }]) => {
    const ids = [...effects].filter(([, count]) => count > 0).map(([id]) => id);
    return ids.flatMap((id) => records.claimOf(site, id)?.spec.owner.name ?? []);
  });
}
