import type { Site } from "./site.ts";
import type { Trouble, TroubleMakers } from "./trouble.ts";
import { byStrangers } from "./strangers.ts";
import { toBerth } from "./troubles-berth.ts";
import { onTheHypervisor } from "./troubles-hypervisor.ts";
import { aroundLives } from "./troubles-lives.ts";
import { aroundOrphans } from "./troubles-orphans.ts";
import { aroundRestarts } from "./troubles-restart.ts";
import { aroundStatus } from "./troubles-status.ts";
import { together } from "./troubles-together.ts";
import { onTheWire } from "./troubles-wire.ts";
import { onWorkers } from "./troubles-workers.ts";
import { fairWeather } from "./wire.ts";
import type { World } from "./world.ts";

/** Everything that can go wrong or be done, in one list: the fault menu. */
export function troubleMenu(makers: TroubleMakers): Trouble[] {
  return [
    ...declaring(makers),
    ...byHand(makers),
    ...onTheWire(makers),
    ...onTheHypervisor(makers),
    ...toBerth(makers),
    ...together(makers),
    ...aroundRestarts(makers),
    ...byStrangers(makers),
    ...aroundStatus(makers),
    ...onWorkers(makers),
    ...aroundLives(makers),
    ...(makers.world.cleanUp === undefined ? [] : aroundOrphans(makers)),
  ];
}

function declaring({ people }: TroubleMakers): Trouble[] {
  return [
    { name: "declare", weight: 6, isAlways: true, strike: () => people.declare() },
    { name: "edit", weight: 6, isAlways: true, strike: () => people.edit() },
    { name: "remove", weight: 3, strike: () => people.remove() },
    { name: "pause", weight: 1, strike: () => people.pause() },
    { name: "remove under way", weight: 2, strike: () => people.removeUnderWay() },
    { name: "pause under way", weight: 2, strike: () => people.pauseUnderWay() },
    { name: "flip-flop", weight: 1, strike: () => people.flipFlop() },
    { name: "declare anew", weight: 1, strike: () => people.declareAnew() },
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
    { name: "attach a disk", weight: 1, strike: () => hands.attachDisk() },
    { name: "detach a disk", weight: 1, strike: () => hands.changeDisk("detachDisk") },
    { name: "grow a disk", weight: 1, strike: () => hands.changeDisk("growDisk") },
    { name: "rename a disk", weight: 1, strike: () => hands.changeDisk("renameDisk") },
    { name: "replace a disk", weight: 1, strike: () => hands.changeDisk("replaceDisk") },
    { name: "use a disk's name again", weight: 1, strike: () => hands.changeDisk("reuseName") },
    {
      name: "use the name of firmware variables again",
      weight: 2,
      strike: () => hands.changeDisk("reuseFirmwareName"),
    },
    {
      name: "attach a disk named like saved memory",
      weight: 1,
      strike: () => hands.changeDisk("attachNamedMemory"),
    },
    {
      name: "remove a disk that was replaced",
      weight: 2,
      strike: () => hands.changeDisk("removeReplaced"),
    },
    { name: "move a disk's slot", weight: 1, strike: () => hands.changeDisk("moveToOtherSlot") },
    { name: "watch over a machine", weight: 1, strike: () => hands.watchOver() },
    { name: "move a machine", weight: 1, strike: () => hands.moveMachine() },
    { name: "act in the last moment", weight: 4, strike: () => hands.actInTheLastMoment() },
  ];
}

/**
 * Every fault ends now: nodes are up, lines stand, disks have room, nobody sleeps. Only who waits
 * for the last moment goes on waiting, and what is to befall the next write still does.
 */
export function healWorld(world: World): void {
  world.trace.say("weather", () => "everything is well again");
  world.isCalm = true;
  for (const [name, weather] of world.weather) {
    Object.assign(weather, { ...fairWeather, nextWrite: weather.nextWrite });
    const site = world.sites.get(name);
    if (site !== undefined) healSite(site);
  }
  for (const weather of world.apiWeather) {
    Object.assign(weather, {
      lagMs: 0,
      lagsOnly: undefined,
      isBroken: false,
      isDoubled: false,
      isCut: false,
      loseReply: 0,
    });
  }
  world.kindsGoSinceMs = undefined;
  world.house.disk.setFault(undefined);
  for (const { life } of world.programs) {
    life.doom = undefined;
    life.napMs = 0;
  }
}

/** Nobody waits for a moment any more, until what is answered is called: then they do again. */
export function disarm({ wires, weather }: World): () => void {
  const armed = [...wires.values()].map((wire) => {
    const { onBegin, onGuarded } = wire;
    Object.assign(wire, { onBegin: undefined, onGuarded: undefined });
    return () => Object.assign(wire, { onBegin, onGuarded });
  });
  const coming = [...weather.values()].map((one) => {
    const { nextWrite } = one;
    one.nextWrite = undefined;
    return () => Object.assign(one, { nextWrite });
  });
  return () => {
    for (const rearm of [...armed, ...coming]) rearm();
  };
}

function healSite(site: Site): void {
  const { model } = site;
  site.letIn(true);
  site.slowDown(0);
  model.faults.clear();
  for (const { name, isOnline } of model.cluster.state.nodes) if (!isOnline) model.startNode(name);
  model.cluster.board.thaw();
  for (const [backing, bytes] of Object.entries(model.cluster.state.capacities)) {
    if (bytes === 0) model.setCapacity(backing, 800 * 1024 ** 3);
  }
  for (const [id, { by }] of site.guests) {
    if (by === "berth" && site.value(id, "lock") === "backup") model.setLock(Number(id), undefined);
  }
  site.backups.clear();
  site.touched();
}
