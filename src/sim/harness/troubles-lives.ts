import { annotations, hypervisorKind, type Hypervisor } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { SecondLife } from "./second-life.ts";
import { isWell } from "./settled.ts";
import { later, type Trouble, type TroubleMakers } from "./trouble.ts";
import type { World } from "./world.ts";

const twoLives = "two lives from one backup";
const atWorkName = "two lives at work";

const here = { id: "machine-a/1", name: "server" };
const there = { id: "machine-b/2", name: "laptop" };
const restTries = 45;

/** How soon people read what a Hypervisor says. */
const readMs = 5_000;

type Helpers = Pick<TroubleMakers, "world" | "people">;

/** Before the original starts: it has a place where a backup of it is to come. */
export function expectLives(helpers: Helpers, planned: readonly string[]): void {
  const { world } = helpers;
  if (planned.includes(twoLives) || planned.includes(atWorkName)) world.place = here;
  world.records.onHypervisor = (hypervisor) => {
    if (isObserved(hypervisor)) world.clock.after(readMs, () => takeBack(helpers, hypervisor));
  };
}

/**
 * A backup is made and later started beside the original: in a place of its own, where it only
 * observes until it is told to take over, or in the same place, where it acts and the original
 * stops. Some minutes later people end it and let the original act again.
 */
export function aroundLives(makers: TroubleMakers): Trouble[] {
  const { world, dice } = makers;
  if (world.home !== "embedded" || world.cleanUp !== undefined) return [];
  const isFree = (): boolean => !world.isCalm && world.copies.every(({ isOver }) => isOver);
  const fromRest = (): void => {
    const how = dice.pick<How>(["same place", ...ownPlaces(world)]);
    if (how === "observes") backUp(makers, how);
    else whenAtRest(makers, restTries, () => backUp(makers, how));
  };
  const atWork = (): void => backUp(makers, dice.pick<How>(["same place", ...ownPlaces(world)]));
  const strike =
    (act: () => void): (() => void) =>
    () => {
      if (isFree()) act();
    };
  return [
    { name: twoLives, weight: 2, strike: strike(fromRest) },
    { name: atWorkName, weight: 2, strike: strike(atWork) },
  ];
}

/** A copy is told from the original by its place where the original has one. */
function ownPlaces({ place }: World): How[] {
  return place === undefined ? [] : ["observes", "takes over"];
}

type How = "observes" | "same place" | "takes over";

/** What a copy makes is in no ledger of the original: one that acts begins where all is made. */
function whenAtRest(makers: TroubleMakers, tries: number, act: () => void): void {
  const { world } = makers;
  if (world.isCalm || tries === 0) return;
  const isAtRest = world.house.isOpen && world.records.isGroundReady();
  if (isAtRest && [...world.records.vms.values()].every(isWell)) act();
  else later(makers, [2_000, 2_000], () => whenAtRest(makers, tries - 1, act));
}

function backUp(makers: TroubleMakers, how: How): void {
  const { world, dice, people } = makers;
  const disk = world.house.disk.copy();
  world.trace.say("people", () => "make a backup");
  for (const { metadata, spec } of people.standing().filter(() => dice.chance(0.5))) {
    const powerState = spec.powerState === "Running" ? "Stopped" : "Running";
    people.change(metadata.name ?? "", { spec: { powerState } });
  }
  later(makers, [0, 40_000], () => {
    if (world.isCalm) return;
    const place = how === "same place" ? world.place : there;
    const name = `copy${world.copies.length + 1}`;
    const copy = new SecondLife(world, { name, disk, place });
    world.copies.push(copy);
    world.trace.say("people", () => `start the backup as ${copy.name}: ${how}`);
    if (dice.chance(0.2)) for (const { life } of world.programs) life.die();
    copy.start();
    if (how === "takes over") later(makers, [5_000, 40_000], () => letCopyAct(world, copy));
    later(makers, [30_000, 240_000], () => end(makers, copy));
  });
}

function letCopyAct(world: World, copy: SecondLife): void {
  for (const hypervisor of copy.records.hypervisors.values()) {
    if (!isObserved(hypervisor)) continue;
    world.trace.say("people", () => `let ${copy.name} take over ${hypervisor.metadata.name}`);
    // Where the copy has ended meanwhile nobody answers.
    takeOver(copy.client, hypervisor).catch(() => undefined);
  }
}

function end(makers: TroubleMakers, copy: SecondLife): void {
  makers.world.trace.say("people", () => `end ${copy.name}`);
  copy.end();
  later(makers, [40_000, 60_000], () => clear(makers, copy));
}

/** Nobody but the copy knows what only it made. When its work has ended people remove that. */
function clear(makers: TroubleMakers, copy: SecondLife): void {
  const { world, hands } = makers;
  const left = copy.ownIds().flatMap(([name, id]) => {
    const site = world.sites.get(name);
    const isThere = site?.guests.get(id)?.by === "berth" && site.text(id) !== undefined;
    return site !== undefined && isThere ? [{ site, id }] : [];
  });
  if (left.some(({ site, id }) => site.isWorkedOn(id))) {
    later(makers, [5_000, 5_000], () => clear(makers, copy));
    return;
  }
  for (const { site, id } of left) hands.clear(site, id);
  copy.isOver = true;
  for (const hypervisor of world.records.hypervisors.values()) {
    takeBack(makers, hypervisor);
  }
}

/** People read what a Hypervisor says, and do it once there is no other life any more. */
function takeBack({ world, people }: Helpers, hypervisor: Hypervisor): void {
  if (!isObserved(hypervisor) || world.copies.some(({ isOver }) => !isOver)) return;
  const { name = "" } = hypervisor.metadata;
  const token = tokenFor(hypervisor);
  if (hypervisor.metadata.annotations?.[annotations.takeoverAt] === token) return;
  people.ask(`take over ${name}`, (client) => takeOver(client, hypervisor));
}

function isObserved({ status }: Hypervisor): boolean {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.reason === "Superseded" || ready?.reason === "PlaceChanged";
}

function tokenFor({ status }: Hypervisor): string {
  return `${status?.otherRun?.epoch ?? 0} ${status?.observedBy ?? ""}`;
}

async function takeOver(client: Client, hypervisor: Hypervisor): Promise<void> {
  const { name = "" } = hypervisor.metadata;
  const merge = { metadata: { annotations: { [annotations.takeoverAt]: tokenFor(hypervisor) } } };
  await client.of(hypervisorKind).patch({ name }, { merge });
}
