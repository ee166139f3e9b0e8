import { annotations, claimKind, orphanKind, virtualMachineKind } from "../../api/index.ts";
import type { Claim, Orphan, VirtualMachine } from "../../api/index.ts";
import type { Dice } from "./dice.ts";
import type { Hands } from "./hands.ts";
import type { People } from "./people.ts";
import { isPaused } from "./readiness.ts";
import { isHeld } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

type Decision = NonNullable<Orphan["spec"]["decision"]>;

const decisions = ["Keep", "Keep", "Destroy", "Destroy", "Adopt", "Adopt", undefined] as const;

interface Left {
  readonly site: Site;
  readonly id: string;
}

/** People who leave machines behind without their objects, and who decide about what is found. */
export class Tidiers {
  readonly #world: World;
  readonly #people: People;
  readonly #dice: Dice;
  /** Orphans that somebody has asked to be deleted, by uid. */
  readonly #forgotten = new Set<string>();

  constructor(world: World, people: People, dice: Dice) {
    this.#world = world;
    this.#people = people;
    this.#dice = dice;
  }

  /**
   * Somebody takes an object away without its machine: it is paused, deleted, and its finalizer
   * taken off, unless something is under way by then. An id that a person chose would stay taken.
   */
  strip(): void {
    const vm = this.#dice.pickAny(this.#people.standing().filter(isAtRest));
    if (vm === undefined) return;
    const { name = "", uid = "" } = vm.metadata;
    this.#people.change(name, { metadata: { annotations: { [annotations.paused]: "true" } } });
    const { clock } = this.#world;
    clock.after(this.#dice.between(2_000, 6_000), () => this.#people.delete(name));
    clock.after(this.#dice.between(12_000, 15_000), () => {
      const now = this.#people.vm(name);
      if (now?.metadata.uid === uid && isLeaving(now) && this.#isQuiet(now)) this.#unhook(now);
      else if (now?.metadata.uid === uid) this.#people.resumeAll();
    });
  }

  #unhook({ metadata }: VirtualMachine): void {
    const { name = "", uid = "" } = metadata;
    this.#people.ask(`takes the finalizer of ${name} away`, (client) => {
      this.#world.orphanLaws.stripped.set(uid, name);
      const merge = { metadata: { finalizers: null } };
      return client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge });
    });
  }

  #isQuiet(vm: VirtualMachine): boolean {
    const { hypervisor = vm.spec.hypervisorRef.name, externalId = "" } = vm.status ?? {};
    const wire = this.#world.wires.get(hypervisor);
    const isBusy = (wire?.effects.get(externalId) ?? 0) > 0;
    return isAtRest(vm) && isPaused(vm) && !isBusy && !wire?.beginning.has(externalId);
  }

  /** The Claim of a machine whose object is gone is lost, as with an old backup. */
  loseClaim(): void {
    const stood = this.stranded().filter(({ spec }) => spec.state === "Bound" && spec.everExisted);
    const claim = this.#dice.pickAny(stood);
    if (claim === undefined) return;
    const { name = "" } = claim.metadata;
    this.#people.ask(`lose the Claim of ${claim.spec.externalId}`, (client) => {
      this.#world.orphanLaws.lostClaims.add(name);
      return client.of(claimKind).delete({ name });
    });
  }

  /** Claims that are held, and not by any object. */
  stranded(): Claim[] {
    const { claims, vms } = this.#world.records;
    const living = new Set([...vms.values()].map(({ metadata }) => metadata.uid));
    return [...claims.values()].filter(({ spec }) => {
      return isHeld(spec) && spec.role !== "DiskHolder" && !living.has(spec.owner.uid);
    });
  }

  /**
   * Those of them of which no Orphan tells. Where somebody else's machine has the id, the Claim is
   * held for as long as that stands.
   */
  untold(): Claim[] {
    const { orphanLaws, sites } = this.#world;
    return this.stranded().filter((claim) => {
      const guest = sites.get(claim.spec.hypervisor.name)?.guests.get(claim.spec.externalId);
      return !orphanLaws.isTold(claim) && guest?.by !== "person";
    });
  }

  /** Somebody says what becomes of something that was found, or takes it back. */
  decide(): void {
    const orphan = this.#dice.pickAny(this.open());
    if (orphan === undefined) return;
    const decision = this.#dice.pick<Decision | undefined>(decisions);
    if (decision !== "Adopt") return this.say(orphan, decision);
    if (orphan.spec.kind !== "Machine") return;
    // Here no namespace may adopt: it is refused, and the word is taken back.
    this.say(orphan, decision);
    this.#world.clock.after(this.#dice.between(10_000, 60_000), () => this.say(orphan, undefined));
  }

  /** As `berth orphans` writes it. */
  say({ metadata, spec, status }: Orphan, decision: Decision | undefined): void {
    const { name = "" } = metadata;
    const adoptAs = decision === "Adopt" ? { namespace: "default", name: "adopted" } : null;
    const confirm = decision === undefined ? null : spec.externalId;
    const observation = status?.observation ?? null;
    const merge = { spec: { decision: decision ?? null, confirm, adoptAs, observation } };
    const what = `decides ${decision ?? "nothing"} of ${spec.kind} ${spec.externalId}`;
    this.#people.ask(`${what} on ${spec.hypervisor}`, (client) => {
      return client.of(orphanKind).patch({ name }, { merge });
    });
  }

  /** What was found and is not destroyed yet. */
  open(): Orphan[] {
    const { orphans } = this.#world.records;
    return [...orphans.values()].filter(({ status }) => status?.reclaimed === undefined);
  }

  /** Nobody needs to read any longer what was reclaimed. */
  forgetGone(): void {
    for (const orphan of this.#world.records.orphans.values()) {
      const { uid = "" } = orphan.metadata;
      if (orphan.status?.reclaimed === undefined || this.#forgotten.has(uid)) continue;
      this.#forgotten.add(uid);
      this.#forget(orphan);
    }
  }

  /** Somebody deletes an Orphan object: it is found again, and nothing was decided of it. */
  forgetAny(): void {
    const orphan = this.#dice.pickAny(this.open());
    if (orphan !== undefined) this.#forget(orphan);
  }

  #forget(orphan: Orphan): void {
    const { name = "" } = orphan.metadata;
    this.#people.ask(`deletes the Orphan of ${orphan.spec.externalId}`, (client) => {
      this.#world.orphanLaws.forget(orphan);
      return client.of(orphanKind).delete({ name });
    });
  }

  /** Machines of Berth's whose object is gone, and that nobody let go. */
  left(): Left[] {
    const { records } = this.#world;
    const uids = new Set([...records.vms.values()].map(({ metadata }) => metadata.uid));
    return [...this.#world.sites.values()].flatMap((site) => {
      return [...site.guests]
        .filter(([, { by, uid }]) => by === "berth" && uid !== undefined && !uids.has(uid))
        .filter(([id]) => records.claimOf(site.name, id)?.spec.state !== "Released")
        .map(([id]) => ({ site, id }));
    });
  }

  /** Somebody switches off a machine that nothing declares. */
  stopLeft(): void {
    const on = this.left().filter(({ site, id }) => site.isRunning(id));
    const found = this.#dice.pickAny(on);
    if (found !== undefined) this.stop(found);
  }

  stop({ site, id }: Left): void {
    if (site.guests.get(id)?.by !== "berth") return;
    site.model.killMachine(Number(id));
    site.touched(id);
    this.#world.trace.say("people", () => `on ${site.name}: somebody stops ${id}`);
  }

  /** In the end people take away what keeps machines from going. */
  free(): void {
    for (const { site, id } of this.left()) {
      if (site.isRunning(id)) this.stop({ site, id });
      Reflect.deleteProperty(site.model.cluster.state.ha, `vm:${id}`);
    }
  }

  /**
   * Somebody decides that everything that was found goes, as far as that can be decided; once more
   * of what is another thing than the one that was decided about.
   */
  decideAll(): void {
    for (const orphan of this.open()) {
      const { allowedDecisions = [], observation } = orphan.status ?? {};
      if (this.#isPersons(orphan) || !allowedDecisions.includes("Destroy")) continue;
      const { decision, observation: decidedFor } = orphan.spec;
      if (decision !== "Destroy" || decidedFor !== observation) this.say(orphan, "Destroy");
    }
  }

  /** Nobody has a volume destroyed that is somebody's own. */
  #isPersons({ spec }: Orphan): boolean {
    const site = this.#world.sites.get(spec.hypervisor);
    return [...(site?.guestVolumes() ?? [])].some(({ key, name }) => {
      const isIt = spec.externalId.endsWith(`:${name}`);
      return isIt && site?.volumes.get(key)?.by === "person";
    });
  }

  /** Whether it was said why a machine cannot be destroyed. */
  isStuck(left: Left): boolean {
    const orphan = this.#orphanOf(left);
    return orphan !== undefined && isStuck(orphan);
  }

  /** Volumes that Berth made and that were found without their machine, by their Orphans. */
  loose(): Orphan[] {
    return this.open().filter(({ spec }) => {
      const site = this.#world.sites.get(spec.hypervisor);
      return [...(site?.guestVolumes() ?? [])].some(({ key, name }) => {
        return spec.externalId.endsWith(`:${name}`) && site?.volumes.get(key)?.by === "berth";
      });
    });
  }

  /** What cannot be destroyed has said why; then it is taken away by hand. */
  clearStuck(hands: Hands): void {
    for (const { site, id } of this.left()) {
      if (!this.isStuck({ site, id })) {
        const told = JSON.stringify(this.#orphanOf({ site, id }));
        const what = `${id} on ${site.name} is not destroyed, and nothing says why`;
        throw new Violation(8, `${what}: ${told}`);
      }
      hands.clear(site, id);
    }
    for (const { spec } of this.loose().filter(isStuck)) {
      const site = this.#world.sites.get(spec.hypervisor);
      const id = /vm-(\d+)-/.exec(spec.externalId)?.[1] ?? "";
      if (site !== undefined && site.text(id) === undefined) hands.clear(site, id);
    }
  }

  /** What stands under an id that is still held, and is somebody else's. */
  clearStrangers(hands: Hands): void {
    for (const { spec } of this.stranded()) {
      const site = this.#world.sites.get(spec.hypervisor.name);
      if (site?.guests.get(spec.externalId)?.by === "person") hands.clear(site, spec.externalId);
    }
  }

  /** As soon as a machine was found about which nothing is decided or done: looks so often. */
  whenFound(act: (left: Left) => void, times = 20): void {
    if (this.#world.isCalm) return;
    const left = this.#dice.pickAny(this.left().filter((one) => this.#isOpen(one)));
    if (left !== undefined) act(left);
    else if (times > 0) this.#world.clock.after(10_000, this.#again(act, times - 1));
  }

  #again(act: (left: Left) => void, times: number): () => void {
    return this.#dice.bind(() => this.whenFound(act, times));
  }

  #isOpen(left: Left): boolean {
    const { spec, status } = this.#orphanOf(left) ?? {};
    const isUntouched = spec?.decision === undefined && status?.operation === undefined;
    return spec?.kind === "Machine" && isUntouched;
  }

  keep(left: Left): void {
    const orphan = this.#orphanOf(left);
    if (orphan !== undefined) this.say(orphan, "Keep");
  }

  #orphanOf({ site, id }: Left): Orphan | undefined {
    return this.open().find(({ spec }) => {
      // A worker that was killed at its end leaves nothing but its lock.
      const isMachine = spec.kind === "Machine" || spec.kind === "Husk";
      return spec.hypervisor === site.name && isMachine && spec.externalId === id;
    });
  }
}

function isAtRest({ spec, status }: VirtualMachine): boolean {
  return spec.externalId === undefined && status?.operation === undefined;
}

/** It failed, or nobody can decide that it goes: a disk that has to stay, what sleeps. */
export function isStuck({ status }: Orphan): boolean {
  const { failure, powerState, allowedDecisions = ["Destroy"] } = status ?? {};
  const isRefused = !allowedDecisions.includes("Destroy") && powerState !== "Running";
  return failure !== undefined || isRefused;
}

function isLeaving({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}
