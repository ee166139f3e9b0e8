import type { Site } from "./site.ts";
import { siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";
import { toBerth } from "./troubles-berth.ts";
import { onTheHypervisor } from "./troubles-hypervisor.ts";
import type { World } from "./world.ts";

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
