import type { VirtualMachine } from "../../api/index.ts";
import { demandSpec, remedyAll, toldWaitMs, unlockWaiting, type Helpers } from "./calm.ts";
import { claimsOfObjects, clearLeft, restOfCleanUp, type Passing } from "./clean-end.ts";
import { Dice } from "./dice.ts";
import {
  demandNothingLeft,
  demandSilence,
  demandSmall,
  hasUntold,
  unknownVolumes,
} from "./ending.ts";
import { Hands } from "./hands.ts";
import { demandClosed, demandHeldFor, demandOwnAddresses } from "./laws-rest.ts";
import { hearUncaught, unheard } from "./laws-sound.ts";
import { isLeftOut } from "./not-yet.ts";
import { People } from "./people.ts";
import { isPaused, isReady } from "./readiness.ts";
import { retryImages } from "./retry-images.ts";
import { Script, type Step } from "./script.ts";
import { settingOf } from "./setting.ts";
import { activityOf, demandSilent, isSeedUnread, quietFor } from "./quiet.ts";
import { isDeleting, isSettledVm, isStuck, isWell, tellVm } from "./settled.ts";
import { Tidiers } from "./tidiers.ts";
import { demandSameAsPlain } from "./twin.ts";
import { nextTurn, passWhile } from "./turns.ts";
import { expectLives } from "./troubles-lives.ts";
import { disarm, healWorld, troubleMenu } from "./troubles.ts";
import { asError, Violation } from "./violation.ts";
import { World, type Home, type WorldOptions } from "./world.ts";

export interface HistoryOptions {
  readonly seed: number;
  /** Is told every event as a line; makes the history slower. */
  readonly listen?: (line: string) => void;
  /** Only these steps of it, by their places: for a shorter history that shows the same. */
  readonly only?: ReadonlySet<number>;
  /** Names of what is left out otherwise, because Berth does not withstand it yet; or "all". */
  readonly also?: readonly string[];
}

export interface HistoryResult {
  readonly seed: number;
  readonly home: Home;
  readonly events: number;
  readonly simulatedMs: number;
  readonly hypervisorCalls: number;
  /** How the history went, as a number: equal for equal histories. */
  readonly fingerprint: number;
  /** What the seed let happen, in order. */
  readonly steps: readonly Step[];
  /** The law that was broken, or what else went wrong. */
  readonly failure: Error | undefined;
}

/** A history of few events is given more trouble: with its end it has at least 300. */
const troubleEventsLeast = 250;
/** Far more than any history needs: whoever gets there repeats itself. */
const eventsMost = 20_000;
/** Who remembers nothing asks for everything before each turn. */
const eventsMostForgetful = 200_000;
/** To make everything once more takes a fifth of a history, so it is done for one in so many. */
const plainEvery = 20;
const convergeMs = 40 * 60_000;
/** A change by hand is seen at the next tick, or when a stalled machine is looked at again. */
const noticeMs = 40_000;
const stalledMs = 16 * 60_000;
/** Every machine is looked at once an hour, a fifth sooner or later. */
const resyncMs = 75 * 60_000;
/** Who asks for another try has its outcome by then, in most cases. */
const answerMs = 60_000;
const settleMs = 150_000;
const restMs = 45_000;
const removeMs = 40 * 60_000;
/** What nobody knows of any more is told by a sweep, when it was seen for an hour. */
const sweptMs = 120 * 60_000;

/**
 * One history: Berth is installed, people declare machines, and for some minutes whatever the seed
 * allows goes wrong. Then the faults end, and everything has to become as declared; nothing more is
 * written; and when everything is deleted, nothing is left. The laws are checked at every event.
 */
export async function runHistory(options: HistoryOptions): Promise<HistoryResult> {
  return resultOf(new History(options));
}

/** The same where nothing else runs on the thread: what nobody catches is the history's own. */
export async function runHistoryAlone(options: HistoryOptions): Promise<HistoryResult> {
  const history = new History(options);
  const stop = hearUncaught((thrown) => history.fall(thrown));
  try {
    return await resultOf(history);
  } finally {
    stop();
  }
}

async function resultOf(history: History): Promise<HistoryResult> {
  try {
    await history.run();
    return history.result(undefined);
  } catch (error) {
    return history.result(asError(error));
  }
}

/** What a seed surely lets happen, by name. Costs next to nothing against the history itself. */
export function plannedSteps(seed: number, also: readonly string[] = []): string[] {
  return new History({ seed, also }).planned();
}

class History {
  readonly #seed: number;
  readonly #options: WorldOptions;
  readonly #world: World;
  readonly #people: People;
  readonly #hands: Hands;
  readonly #tidiers: Tidiers;
  readonly #helpers: Helpers;
  readonly #also: readonly string[];
  readonly #eventsMost: number;
  readonly #only: ReadonlySet<number> | undefined;
  readonly #steps: Step[] = [];
  /** Decides within a step, for everybody who acts in it. */
  readonly #stepDice: Dice;
  /** Whether people ask for another try at once, or wait until Berth looks again by itself. */
  readonly #isPatient: boolean;

  constructor({ seed, listen, only, also = [] }: HistoryOptions) {
    this.#seed = seed;
    this.#also = also;
    this.#only = only;
    this.#stepDice = Dice.of(seed, "steps");
    this.#stepDice.rest();
    this.#isPatient = Dice.of(seed, "patience").chance(0.15);
    this.#options = settingOf(seed, listen);
    const { amnesia } = this.#options;
    this.#eventsMost = amnesia === "none" ? eventsMost : eventsMostForgetful;
    this.#world = new World(this.#options);
    this.#people = new People(this.#world, this.#stepDice);
    this.#hands = new Hands(this.#world, this.#stepDice);
    this.#tidiers = new Tidiers(this.#world, this.#people, this.#stepDice);
    this.#helpers = { world: this.#world, people: this.#people, hands: this.#hands };
  }

  async run(): Promise<void> {
    const world = this.#world;
    expectLives(this.#helpers, this.planned());
    await passWhile(world.install(), (isOver) => this.#passUntil(isOver, 60_000));
    world.start(0);
    if (world.home === "replicas") world.start(1);
    await this.#passUntil(() => world.house.isOpen, 60_000);
    await this.#sufferTrouble();
    await this.#comeToRest();
    await this.#removeAll();
    await this.#passUntil(() => true, 0);
  }

  /** Something was thrown where nobody catches it. */
  fall(thrown: unknown): void {
    this.#world.broken ??= unheard(thrown);
  }

  result(failure: Error | undefined): HistoryResult {
    const { home, trace, clock, wires } = this.#world;
    const calls = [...wires.values()].map(({ requests }) => requests);
    const hypervisorCalls = calls.reduce((sum, count) => sum + count, 0);
    return {
      seed: this.#seed,
      home,
      events: trace.events,
      simulatedMs: clock.monotonicMs(),
      hypervisorCalls,
      fingerprint: (clock.monotonicMs() * 31 + trace.events) * 31 + hypervisorCalls,
      steps: this.#steps,
      failure,
    };
  }

  async #sufferTrouble(): Promise<void> {
    const dice = this.#stepDice;
    const script = this.#script();
    for (let index = 0; this.#isToCome(index, script); index++) {
      // Also where a step is left out its time passes: the others keep their moments.
      await this.#pass(script.waitMs(index));
      if (this.#only?.has(index) === false) continue;
      const { name, strike } = script.trouble(index);
      this.#steps.push({ index, name });
      dice.turnTo(this.#seed, `step ${index} ${name}`);
      strike();
      dice.rest();
      this.#startDead(this.#restartMs(index));
    }
  }

  #script(): Script {
    const menu = troubleMenu({
      world: this.#world,
      dice: this.#stepDice,
      people: this.#people,
      hands: this.#hands,
      revive: (afterMs: number) => this.#startDead(afterMs),
    });
    const known = menu.filter(({ name }) => !isLeftOut(name, this.#also));
    return new Script(this.#seed, known, this.#world.cleanUp !== undefined);
  }

  /** The names of the first steps, which come in any case. */
  planned(): string[] {
    const script = this.#script();
    return Array.from({ length: script.least }, (_, index) => script.trouble(index).name);
  }

  #isToCome(index: number, script: Script): boolean {
    if (this.#only !== undefined) return index <= Math.max(...this.#only, -1);
    return index < script.least || this.#world.trace.events < troubleEventsLeast;
  }

  #restartMs(place: number | string): number {
    return Dice.of(this.#seed, `restart ${place}`).between(0, 15_000);
  }

  /** Whoever runs Berth starts it again when it is down. */
  #startDead(afterMs: number): void {
    const { programs, clock } = this.#world;
    for (const [index, program] of programs.entries()) {
      if (!program.life.isDead || this.#starting.has(index)) continue;
      this.#starting.add(index);
      clock.after(afterMs, () => {
        this.#starting.delete(index);
        this.#world.start(index);
      });
    }
  }

  readonly #starting = new Set<number>();
  readonly #passing: Passing = {
    until: (holds, withinMs) => this.#passUntil(holds, withinMs),
    quietFor: (ms) => quietFor(this.#world, ms),
  };

  async #comeToRest(): Promise<void> {
    const world = this.#world;
    const all = (): VirtualMachine[] => [...world.records.vms.values()];
    healWorld(world);
    this.#startDead(this.#restartMs("at rest"));
    const areWell = (): boolean => this.#isQuiet() && all().every(isWell);
    await this.#pass(noticeMs);
    while (all().some(isPaused)) {
      this.#people.resumeAll();
      await this.#pass(noticeMs);
    }
    await this.#showUnseen();
    retryImages(world, this.#people);
    await this.#waitUntil(areWell);
    // A hypervisor that has just come back was not asked for every VM yet.
    await this.#pass(noticeMs);
    for (let round = 0; round < 8; round++) {
      const isSettled = (): boolean => this.#isQuiet() && all().every(isSettledVm);
      if (!(await this.#passUntil(isSettled, convergeMs)) && !unlockWaiting(all(), this.#helpers)) {
        throw new Violation(8, `minutes after the last fault ${this.#unsettled()}`);
      }
      if (all().every(isWell)) break;
      remedyAll(all().filter(isStuck), this.#helpers);
      await this.#pass(noticeMs);
      await this.#waitUntil(areWell);
    }
    for (const vm of all()) {
      if (isDeleting(vm) || !isReady(vm))
        throw new Violation(8, `its remedies do not help ${tellVm(vm)}`);
      demandSpec(vm, world);
    }
    await this.#demandKnown();
    await restOfCleanUp(world, this.#tidiers, this.#passing);
    const rearm = disarm(world);
    await this.#demandRest();
    if (this.#seed % plainEvery === 0) await demandSameAsPlain(world, this.#options);
    rearm();
  }

  /** Law 2: what is left of work that died is known to somebody, also while its VM lives. */
  async #demandKnown(): Promise<void> {
    if (isLeftOut("kill imports", this.#also)) return;
    const unknown = (): string[] => unknownVolumes(this.#world);
    if (await this.#passUntil(() => unknown().length === 0, sweptMs)) return;
    throw new Violation(2, `nothing and nobody knows of ${unknown().join(", ")}`);
  }

  /** What no list of a hypervisor shows is seen within the hour, or when somebody asks. */
  async #showUnseen(): Promise<void> {
    if (!this.#hands.didUnseen) return;
    if (!this.#isPatient) this.#people.retryAll();
    await this.#pass(this.#isPatient ? resyncMs : noticeMs);
  }

  /** Until Berth looks again by itself; most people tell it to, and wait for the answer only. */
  async #waitUntil(holds: () => boolean): Promise<void> {
    if (await this.#passUntil(holds, 0)) return;
    if (!this.#isPatient) this.#people.retryAll();
    const { records, clock } = this.#world;
    const toldMs = toldWaitMs([...records.vms.values()], clock.nowMs()) + answerMs;
    await this.#passUntil(holds, this.#isPatient ? Math.max(stalledMs, toldMs) : answerMs);
  }

  /** Law 8: when all is as declared, nothing more is written. */
  async #demandRest(): Promise<void> {
    const world = this.#world;
    await this.#passUntil(() => !isSeedUnread(world), stalledMs);
    // What was just learned is still written down, agents come up a while after their guests, and
    // a cluster that shows suddenly less is believed after a minute.
    await this.#passUntil(quietFor(this.#world, this.#isPatient ? settleMs : 70_000), settleMs);
    const before = activityOf(world);
    await this.#pass(restMs);
    demandSilent(before, activityOf(world));
    this.#demandOrder();
  }

  async #removeAll(): Promise<void> {
    const { world } = this.#helpers;
    const { records } = world;
    for (const { metadata } of this.#people.standing()) this.#people.delete(metadata.name ?? "");
    await this.#passUntil(() => this.#isQuiet(), 60_000);
    const left = (): VirtualMachine[] => [...records.vms.values()];
    const isOver = (): boolean => left().every(isSettledVm);
    for (let round = 0; round < 8 && records.vms.size > 0; round++) {
      if (!(await this.#passUntil(isOver, removeMs)) && !unlockWaiting(left(), this.#helpers)) {
        throw new Violation(8, `minutes after its deletion ${this.#unsettled()}`);
      }
      remedyAll(left().filter(isSettledVm), this.#helpers);
      await this.#waitUntil(() => records.vms.size === 0);
    }
    if (records.vms.size > 0) throw new Violation(8, `cannot be deleted: ${this.#unsettled()}`);
    await this.#removeImages();
    await clearLeft(world, { tidiers: this.#tidiers, hands: this.#hands }, this.#passing);
    this.#demandOrder();
    await this.#passUntil(() => !hasUntold(world), sweptMs);
    demandNothingLeft(world);
    await demandSilence(world);
    await passWhile(demandSmall(world), (isDone) => this.#passUntil(isDone, 60_000));
  }

  async #removeImages(): Promise<void> {
    if (await this.#passUntil(() => this.#people.deleteImages(), removeMs)) return;
    const left = JSON.stringify([...this.#world.records.images.values()]);
    throw new Violation(8, `an image cannot be deleted: ${left}`);
  }

  /** Nothing is open, what is held has an owner, and who watched all the time knows it all. */
  #demandOrder(): void {
    const { vms, claims, files, images, orphans } = this.#world.records;
    for (const objects of [vms, images, orphans]) demandClosed(objects.values());
    demandHeldFor(claimsOfObjects(this.#world, this.#tidiers), vms.values());
    demandHeldFor(files.values(), images.values());
    for (const site of this.#world.sites.values()) demandOwnAddresses(site.filesOfBerth());
    this.#world.watchers.vms.demandKnows(vms);
    this.#world.watchers.claims.demandKnows(new Map([...claims, ...files]));
  }

  #isQuiet(): boolean {
    const { pending } = this.#people;
    const { records, copies } = this.#world;
    const isOne = copies.every(({ isOver }) => isOver);
    return isOne && pending === 0 && this.#starting.size === 0 && records.isGroundReady();
  }

  #unsettled(): string {
    const vms = [...this.#world.records.vms.values()].filter((vm) => !isSettledVm(vm));
    const all = [...vms, ...this.#world.records.behind()];
    if (all.length === 0) return this.#people.pending > 0 ? "people wait" : "Berth starts";
    return all.map(tellVm).join("; ");
  }

  async #pass(ms: number): Promise<void> {
    const endMs = this.#world.clock.monotonicMs() + ms;
    await this.#passUntil(() => false, ms);
    const leftMs = endMs - this.#world.clock.monotonicMs();
    if (leftMs > 0) this.#world.clock.advance(leftMs);
  }

  /** Lets time pass, one event after the other, until something holds; false if it never does. */
  async #passUntil(holds: () => boolean, withinMs: number): Promise<boolean> {
    const { world } = this.#helpers;
    for (const endMs = world.clock.monotonicMs() + withinMs; ;) {
      await nextTurn();
      world.guard(() => world.laws.atEveryEvent());
      if (world.broken !== undefined) throw asError(world.broken);
      if (world.trace.events > this.#eventsMost) {
        throw new Violation(6, `${world.trace.events} events, and no end: ${this.#unsettled()}`);
      }
      if (holds()) return true;
      const nextMs = world.clock.nextInMs();
      if (nextMs === undefined || world.clock.monotonicMs() + nextMs > endMs) return false;
      world.clock.advance(nextMs);
    }
  }
}
