import type { Dice } from "./dice.ts";
import type { Hands } from "./hands.ts";
import type { People } from "./people.ts";
import type { Site } from "./site.ts";
import type { World } from "./world.ts";

/** What can happen in a history. A seed allows some of it. */
export interface Trouble {
  readonly name: string;
  /** How often it happens, against the others. */
  readonly weight: number;
  readonly strike: () => void;
}

export interface TroubleMakers {
  readonly world: World;
  readonly dice: Dice;
  readonly people: People;
  readonly hands: Hands;
  /** Starts what is dead, after so long. */
  readonly revive: (afterMs: number) => void;
}

/** Everything that can go wrong or be done, in one list: the fault menu. */
export function troubleMenu(makers: TroubleMakers): Trouble[] {
  return [
    ...declaring(makers),
    ...byHand(makers),
    ...onTheWire(makers),
    ...onTheHypervisor(makers),
    ...toBerth(makers),
  ];
}

function declaring({ people }: TroubleMakers): Trouble[] {
  return [
    { name: "declare", weight: 6, strike: () => people.declare() },
    { name: "edit", weight: 6, strike: () => people.edit() },
    { name: "remove", weight: 3, strike: () => people.remove() },
    { name: "pause", weight: 1, strike: () => people.pause() },
  ];
}

function byHand({ hands }: TroubleMakers): Trouble[] {
  return [
    { name: "take an id", weight: 2, strike: () => hands.takeId() },
    { name: "recycle an id", weight: 1, strike: () => hands.recycleId() },
    { name: "destroy a machine", weight: 1, strike: () => hands.destroyMachine() },
    { name: "lose a file", weight: 1, strike: () => hands.loseFile() },
    { name: "copy a machine", weight: 1, strike: () => hands.copyMachine() },
    { name: "stop a machine", weight: 1, strike: () => hands.togglePower() },
    { name: "edit a machine", weight: 1, strike: () => hands.editMachine() },
    { name: "lock a machine", weight: 1, strike: () => hands.lockMachine() },
    { name: "leave a volume", weight: 1, strike: () => hands.leaveVolume() },
  ];
}

function onTheWire(makers: TroubleMakers): Trouble[] {
  const { world, dice } = makers;
  const forAWhile = (what: string, set: (site: string, isOn: boolean) => void): (() => void) => {
    return () => {
      const site = siteOf(makers).name;
      world.trace.say("weather", () => `${site}: ${what}`);
      set(site, true);
      world.clock.after(dice.between(500, 30_000), () => set(site, false));
    };
  };
  const weatherOf = (site: string): NonNullable<ReturnType<typeof world.weather.get>> => {
    const weather = world.weather.get(site);
    if (weather === undefined) throw new Error(`there is no ${site}`);
    return weather;
  };
  return [
    {
      name: "lose replies",
      weight: 3,
      strike: forAWhile("replies are lost", (site, isOn) => {
        weatherOf(site).loseReply = isOn ? dice.pick([0.1, 0.3, 0.8]) : 0;
      }),
    },
    {
      name: "lose requests",
      weight: 2,
      strike: forAWhile("requests are lost", (site, isOn) => {
        weatherOf(site).loseRequest = isOn ? dice.pick([0.1, 0.3]) : 0;
      }),
    },
    {
      name: "time out",
      weight: 1,
      strike: forAWhile("the gateway times out", (site, isOn) => {
        weatherOf(site).gatewayTimeout = isOn ? 0.3 : 0;
      }),
    },
    {
      name: "delay",
      weight: 1,
      strike: forAWhile("everything is slow", (site, isOn) => {
        weatherOf(site).delayMs = isOn ? dice.pick([200, 2_000, 12_000]) : 0;
      }),
    },
    {
      name: "cut off",
      weight: 2,
      strike: forAWhile("cannot be reached", (site, isOn) => {
        weatherOf(site).isCut = isOn;
      }),
    },
  ];
}

function onTheHypervisor(makers: TroubleMakers): Trouble[] {
  const { world, dice } = makers;
  const say = (site: Site, what: string): void =>
    world.trace.say("weather", () => `${site.name}: ${what}`);
  const later = (least: number, most: number, act: () => void): void => {
    world.clock.after(dice.between(least, most), act);
  };
  return [
    {
      name: "kill a worker",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        const steps = dice.between(1, 8);
        say(site, `a worker is killed at its step ${steps}`);
        site.model.faults.onStep({
          verdict: { kind: "kill" },
          matches: ({ name, steps: at }) => isWorker(name) && at >= steps,
        });
      },
    },
    {
      name: "fail a worker",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        const steps = dice.between(1, 8);
        say(site, `a worker fails at its step ${steps}`);
        const error = new Error("Input/output error");
        site.model.faults.onStep({
          verdict: { kind: "fail", error },
          matches: ({ name, steps: at }) => isWorker(name) && at >= steps,
        });
      },
    },
    {
      name: "no worker",
      weight: 1,
      strike: () => {
        const site = siteOf(makers);
        say(site, "the next worker cannot be started");
        site.model.faults.onRequest({
          kind: "noWorker",
          matches: ({ method }) => method === "POST",
        });
      },
    },
    {
      name: "crash a node",
      weight: 1,
      strike: () => {
        const site = siteOf(makers);
        const node = dice.pick(["pve1", "pve2", "pve3"]);
        if (site.model.cluster.state.nodes.some(({ isOnline }) => !isOnline)) return;
        say(site, `${node} loses power`);
        site.model.crashNode(node);
        site.personActed();
        later(5_000, 90_000, () => {
          site.model.startNode(node);
          say(site, `${node} is back`);
        });
      },
    },
    {
      name: "lose quorum",
      weight: 1,
      strike: () => {
        const site = siteOf(makers);
        say(site, "the quorum is lost");
        site.model.faults.hasNoQuorum = true;
        later(3_000, 60_000, () => {
          site.model.faults.hasNoQuorum = false;
        });
      },
    },
    {
      name: "fill the storage",
      weight: 1,
      strike: () => {
        const site = siteOf(makers);
        const backing = `${dice.pick(["pve1", "pve2"])}:rpool/data`;
        const { capacities } = site.model.cluster.state;
        const bytes = capacities[backing];
        if (bytes === undefined || bytes === 0) return;
        say(site, `${backing} is full`);
        site.model.setCapacity(backing, 0);
        later(3_000, 60_000, () => site.model.setCapacity(backing, bytes));
      },
    },
    {
      name: "old lists",
      weight: 2,
      strike: () => {
        const site = siteOf(makers);
        say(site, "its lists are old");
        site.model.cluster.board.freeze();
        later(3_000, 60_000, () => site.model.cluster.board.thaw());
      },
    },
  ];
}

function toBerth(makers: TroubleMakers): Trouble[] {
  const { world, dice, people } = makers;
  const anyProgram = (): World["programs"][number] | undefined => {
    const leader = world.programs.find((program) => program.isLeader());
    return dice.chance(0.8) ? leader : dice.pickAny(world.programs);
  };
  const apiForAWhile = (
    what: string,
    set: (weather: World["apiWeather"][number], isOn: boolean) => void,
  ): (() => void) => {
    return () => {
      const weather = dice.pickAny(world.apiWeather);
      if (weather === undefined) return;
      world.trace.say("weather", () => what);
      set(weather, true);
      world.clock.after(dice.between(500, 30_000), () => set(weather, false));
    };
  };
  const common: Trouble[] = [
    {
      name: "crash",
      weight: 8,
      strike: () => {
        const life = anyProgram()?.life;
        if (life === undefined) return;
        life.doom = { callsLeft: dice.between(1, 60), when: dice.pick(["before", "after"]) };
      },
    },
    {
      // The worst moment: a request is on its way, its sender dies, and what it is about is deleted.
      name: "change one's mind",
      weight: 3,
      strike: () => {
        const life = anyProgram()?.life;
        if (life === undefined) return;
        world.trace.say("weather", () => "requests are slow, and the next sender dies");
        for (const weather of world.weather.values()) {
          weather.delayMs = 25_000;
          world.clock.after(3_000, () => void (weather.delayMs = 0));
        }
        life.doom = { callsLeft: 1, when: "after", onlyEffects: true };
        world.clock.after(3_100, () => {
          if (!life.isDead) return;
          for (const name of underWay(world)) people.delete(name);
          makers.revive(dice.between(0, 500));
        });
      },
    },
    {
      name: "old news",
      weight: 2,
      strike: apiForAWhile("watches are late", (weather, isOn) => {
        weather.lagMs = isOn ? dice.pick([50, 1_000, 10_000]) : 0;
      }),
    },
    {
      name: "broken watches",
      weight: 1,
      strike: apiForAWhile("watches break", (weather, isOn) => {
        weather.isBroken = isOn;
      }),
    },
    {
      name: "full disk",
      weight: 1,
      strike: () => {
        world.trace.say("weather", () => "the API's disk is full");
        world.house.disk.setFault("full");
        world.clock.after(dice.between(500, 20_000), () => world.house.disk.setFault(undefined));
      },
    },
  ];
  if (world.home === "embedded") return common;
  return [
    ...common,
    {
      name: "sleep",
      weight: 2,
      strike: () => {
        const program = anyProgram();
        const ms = dice.between(1_000, 90_000);
        world.trace.say("weather", () => `${program?.name} is stopped for ${ms} ms`);
        program?.life.sleep(ms);
      },
    },
    {
      name: "lose the API",
      weight: 1,
      strike: apiForAWhile("a program cannot reach the API", (weather, isOn) => {
        weather.isCut = isOn;
      }),
    },
    {
      name: "lose the API's replies",
      weight: 2,
      strike: apiForAWhile("replies of the API are lost", (weather, isOn) => {
        weather.loseReply = isOn ? dice.pick([0.1, 0.5]) : 0;
      }),
    },
  ];
}

/** The objects about whose machines a request is on its way. */
function underWay({ wires, records }: World): string[] {
  return [...wires].flatMap(([site, { effects }]) => {
    const ids = [...effects].filter(([, count]) => count > 0).map(([id]) => id);
    return ids.flatMap((id) => records.claimOf(site, id)?.spec.owner.name ?? []);
  });
}

/** Tasks have names like "qmcreate:101"; requests begin with their method. */
function isWorker(name: string): boolean {
  return name.startsWith("qm");
}

function siteOf({ world, dice }: TroubleMakers): Site {
  const site = dice.pickAny([...world.sites.values()]);
  if (site === undefined) throw new Error("there is no cluster");
  return site;
}

/** Every fault ends now: nodes are up, lines stand, disks have room, nobody sleeps. */
export function healWorld(world: World): void {
  world.trace.say("weather", () => "everything is well again");
  for (const [name, weather] of world.weather) {
    Object.assign(weather, {
      isCut: false,
      loseRequest: 0,
      loseReply: 0,
      gatewayTimeout: 0,
      delayMs: 0,
    });
    const site = world.sites.get(name);
    if (site !== undefined) healSite(site);
  }
  for (const weather of world.apiWeather) {
    Object.assign(weather, { lagMs: 0, isBroken: false, isCut: false, loseReply: 0 });
  }
  world.house.disk.setFault(undefined);
  for (const { life } of world.programs) life.doom = undefined;
}

function healSite(site: Site): void {
  const { model } = site;
  model.faults.clear();
  for (const { name, isOnline } of model.cluster.state.nodes) if (!isOnline) model.startNode(name);
  model.cluster.board.thaw();
  for (const [backing, bytes] of Object.entries(model.cluster.state.capacities)) {
    if (bytes === 0) model.setCapacity(backing, 800 * 1024 ** 3);
  }
  for (const [id, { by }] of site.guests) {
    if (by === "berth" && site.value(id, "lock") === "backup") model.setLock(Number(id), undefined);
  }
}
