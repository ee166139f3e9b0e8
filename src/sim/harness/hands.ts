import type { Dice } from "./dice.ts";
import { diskHands, moveSlot } from "./hands-disks.ts";
import { moveVolumes, putVolume, takeVolume, type Found } from "./hands-volumes.ts";
import { isProvable } from "./provable.ts";
import type { Site } from "./site.ts";
import type { World } from "./world.ts";

const strangerUuid = "00000000-0000-4000-8000-00000000f00d";

/** What a stranger's machine has in common with one that was there before. */
interface Likeness {
  readonly node?: string | undefined;
  readonly mark?: string | undefined;
}

/** People who work on the hypervisors themselves, by hand, beside Berth. */
export class Hands {
  readonly #world: World;
  readonly #dice: Dice;
  /** Somebody changed what no list of a hypervisor shows. */
  didUnseen = false;

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  /** Somebody makes a machine; best of all under an id that Berth has just reserved. */
  takeId(): void {
    const site = this.#anySite();
    const reserved = [...this.#world.records.claims.values()]
      .map(({ spec }) => spec)
      .filter((spec) => spec.state === "Reserved" && spec.hypervisor.name === site.name)
      .map(({ externalId }) => externalId);
    const free = String(this.#dice.between(100, 139));
    const id = this.#dice.pickAny(reserved) ?? this.#dice.pick([free, "300"]);
    if (site.text(id) !== undefined || this.#isBusy(site, id)) return;
    this.#makeStranger(site, id);
    this.#say(site, `takes the id ${id}`);
  }

  /** Somebody deletes Berth's machine and makes another one under its id. */
  recycleId(): void {
    const found = this.#anyOfBerth();
    if (found !== undefined) this.#recycle(found);
  }

  #recycle({ site, id }: Found): void {
    // Sometimes it is a restored copy, which bears the very mark and another UUID.
    const mark = /^#.*berth.*$/m.exec(site.text(id) ?? "")?.[0];
    const node = site.model.cluster.nodeOfGuest(Number(id));
    this.#destroy(site, id);
    this.#makeStranger(site, id, { node, mark: this.#dice.chance(0.5) ? mark : undefined });
    this.#say(site, `deletes ${id} and makes another machine under that id`);
  }

  destroyMachine(): void {
    const found = this.#anyOfBerth();
    if (found === undefined) return;
    this.#destroy(found.site, found.id);
    this.#say(found.site, `deletes the machine ${found.id}`);
  }

  /** A machine that stood is taken away, whole or only its file. Answers which. */
  takeAway(): Found | undefined {
    const found = this.#anyOfBerth((site, id) => this.#hasStood(site, id));
    if (found === undefined) return undefined;
    if (this.#dice.chance(0.5)) this.#lose(found);
    else this.#destroy(found.site, found.id);
    this.#say(found.site, `takes the machine ${found.id} away`);
    return found;
  }

  /** Somebody takes a machine to another node with its disks, where it stays off. */
  moveMachine(onlyStood = false): Found | undefined {
    const found = this.#anyOfBerth((at, one) => !onlyStood || this.#hasStood(at, one));
    if (found === undefined) return undefined;
    const { site, id } = found;
    const from = site.model.cluster.nodeOfGuest(Number(id));
    const to = this.#dice.pick(["pve1", "pve2"]);
    if (from === undefined || from === to || site.value(id, "lock") !== undefined) return undefined;
    if (site.model.cluster.state.nodes.some(({ isOnline }) => !isOnline)) return undefined;
    site.model.killMachine(Number(id));
    const text = site.text(id) ?? "";
    this.#disown(site, id, text);
    site.model.removeGuestFile(Number(id));
    site.model.writeGuestFile(to, Number(id), text);
    moveVolumes(site, id, { from, to });
    site.moves.add(`${to}:${id}`);
    site.touched(id);
    this.#say(site, `moves ${id} from ${from} to ${to}`);
    return found;
  }

  /**
   * Somebody acts between Berth's look at a machine and what follows from it: before the last look
   * of an operation, or while a request that names the version which it changes is on its way.
   */
  actInTheLastMoment(): void {
    const site = this.#anySite();
    const wire = this.#world.wires.get(site.name);
    if (wire === undefined) return;
    const act = this.#dice.pick(["recycle", "recycle", "recycle", "edit", "stop"] as const);
    const kinds = this.#dice.pick([/./, /power|reboot|resume|suspend/, /destroy/]);
    const acts = {
      recycle: (found: Found) => this.#recycle(found),
      edit: (found: Found) => this.#edit(found),
      stop: (found: Found) => this.#stop(found),
    };
    const strike = this.#dice.bind((id: string, kind?: string): void => {
      if (kind !== undefined && !kinds.test(kind)) return;
      if (!this.#isQuietHere(site, id)) return;
      wire.onBegin = undefined;
      wire.onGuarded = undefined;
      acts[act]({ site, id });
    });
    if (this.#dice.chance(0.7)) wire.onBegin = strike;
    else wire.onGuarded = (id) => strike(id);
    this.#say(site, "waits for the last moment");
  }

  /** Somebody removes a guest's file, and its volumes stay. */
  loseFile(): void {
    const found = this.#anyOfBerth();
    if (found !== undefined) this.#lose(found);
  }

  #lose({ site, id }: Found): void {
    site.model.killMachine(Number(id));
    site.model.removeGuestFile(Number(id));
    Reflect.deleteProperty(site.model.cluster.state.ha, `vm:${id}`);
    site.guests.delete(id);
    this.#disown(site, id);
    this.#say(site, `removes the file of ${id}`);
  }

  /** A copy of Berth's machine, mark and all, under another id: nothing of it is Berth's. */
  copyMachine(): void {
    const found = this.#anyOfBerth();
    const copy = String(this.#dice.between(400, 450));
    if (found === undefined || found.site.text(copy) !== undefined) return;
    const { site, id } = found;
    const withoutDisks = (site.text(id) ?? "").replaceAll(
      /^(scsi|virtio|ide|sata|unused)\d+:.*\n/gm,
      "",
    );
    const text = withoutDisks.replace(/uuid=[0-9a-f-]+/, `uuid=${strangerUuid}`);
    site.model.writeGuestFile("pve2", Number(copy), text);
    site.personActed(copy);
    this.#say(site, `copies ${id} to ${copy}`);
  }

  togglePower(): void {
    const found = this.#anyOfBerth();
    if (found !== undefined) this.#stop(found);
  }

  #stop({ site, id }: Found): void {
    if (site.isRunning(id)) site.model.killMachine(Number(id));
    site.touched(id);
    this.#say(site, `stops ${id}`);
  }

  editMachine(): void {
    const found = this.#anyOfBerth();
    if (found !== undefined) this.#edit(found);
  }

  #edit({ site, id }: Found): void {
    const text = (site.text(id) ?? "").replace(
      /^cores: .*$/m,
      `cores: ${this.#dice.between(5, 8)}`,
    );
    const node = site.model.cluster.nodeOfGuest(Number(id));
    if (node !== undefined) site.model.writeGuestFile(node, Number(id), text);
    site.touched(id);
    this.#say(site, `changes the cores of ${id}`);
  }

  /** A backup holds a machine for a while. */
  lockMachine(): void {
    const found = this.#anyOfBerth();
    if (found === undefined) return;
    const { site, id } = found;
    if (site.value(id, "lock") !== undefined) return;
    site.model.setLock(Number(id), "backup");
    site.backups.add(id);
    site.touched(id);
    this.#say(site, `locks ${id} for a backup`);
    const finish = (): void => {
      if (site.value(id, "lock") !== "backup") return;
      // Without a majority nobody can write, not even a backup that is done.
      if (!site.model.cluster.isQuorate()) return void this.#world.clock.after(5_000, finish);
      site.model.setLock(Number(id), undefined);
      site.backups.delete(id);
      site.touched(id);
      this.#say(site, `has the backup of ${id}`);
    };
    this.#world.clock.after(this.#dice.between(2_000, 90_000), finish);
  }

  /** A volume of somebody's that no machine refers to, under an id that Berth may choose. */
  leaveVolume(): void {
    const site = this.#anySite();
    const free = this.#dice.pick([String(this.#dice.between(100, 120)), "300", "301"]);
    const bereft = this.#dice.pickAny(this.#bereft(site));
    if (bereft !== undefined) this.leaveVolumeBehind({ site, id: bereft });
    else if (!this.#isClaimed(site, free)) this.#leave({ site, id: free }, "pve1");
  }

  /** The same on every node, under an id that nobody has yet. */
  leaveVolumesUnder({ site, id }: Found): void {
    if (this.#isClaimed(site, id)) return;
    for (const node of site.nodes) this.#leave({ site, id }, node);
  }

  /** The same where a machine was that is gone and is not to be made anew. */
  leaveVolumeBehind({ site, id }: Found): void {
    const node = this.#world.records.claimOf(site.name, id)?.spec.node;
    if (node !== undefined && this.#bereft(site).includes(id)) this.#leave({ site, id }, node);
  }

  #leave({ site, id }: Found, node: string): void {
    if (site.text(id) !== undefined || this.#isBusy(site, id)) return;
    const backing = `${node}:rpool/data`;
    const name = `vm-${id}-disk-${this.#dice.between(0, 3)}`;
    // One with the very name that the Claim knows could not be told from Berth's by anybody.
    const claim = this.#world.records.claimOf(site.name, id)?.spec ?? {};
    if (isProvable(claim, { backing, name }) || !putVolume({ site, id }, backing, name)) return;
    this.#say(site, `leaves the volume ${name} on ${node}`);
  }

  /** Ids under which a machine of Berth's stood that is gone, and is not to be made anew. */
  #bereft(site: Site): string[] {
    const { claims, vms } = this.#world.records;
    return [...claims.values()].flatMap(({ spec }) => {
      const { namespace, name } = spec.owner;
      const isHere = spec.hypervisor.name === site.name && spec.state === "Bound";
      const isAsked = vms.get(`${namespace}/${name}`)?.spec.onMissing === "Recreate";
      const isGone = site.text(spec.externalId) === undefined;
      return isHere && isGone && !isAsked && spec.everExisted ? [spec.externalId] : [];
    });
  }

  /** Somebody puts a disk of their own into Berth's machine. */
  attachDisk(): void {
    const found = this.#anyOfBerth();
    if (found === undefined) return;
    const { site, id } = found;
    const node = site.model.cluster.nodeOfGuest(Number(id));
    const text = site.text(id) ?? "";
    if (node === undefined || /^\[|^lock:|^scsi9:/m.test(text) || !/^scsi0:/m.test(text)) return;
    const backing = `${node}:rpool/data`;
    const name = `vm-${id}-disk-9`;
    if (!putVolume({ site, id }, backing, name)) return;
    site.model.writeGuestFile(node, Number(id), `${text}scsi9: local-zfs:${name},size=1G\n`);
    site.touched(id);
    this.#say(site, `attaches the disk ${name} to ${id}`);
  }

  /** Somebody does something to a disk of Berth's machine. */
  changeDisk(how: keyof typeof diskHands, isMeant?: (site: Site, id: string) => boolean): void {
    const found = this.#anyOfBerth(isMeant);
    if (found === undefined) return;
    const { volumes = [] } = this.#world.records.claimOf(found.site.name, found.id)?.spec ?? {};
    const isClaimed = (name: string): boolean => volumes.some(({ id }) => id.endsWith(`:${name}`));
    const done = diskHands[how]({ ...found, isClaimed }, this.#dice);
    if (done === undefined) return;
    this.didUnseen = true;
    this.#say(found.site, done);
  }

  /** What a remedy asks of a person: a disk off its slot, or into another one. */
  moveSlot({ site, id }: Found, from: string, to?: string): void {
    moveSlot({ site, id }, from, to);
    this.#say(site, `takes ${from} of ${id} ${to === undefined ? "off" : `to ${to}`}`);
  }

  /** Somebody has high availability watch over a machine, for a while or for good. */
  watchOver(): void {
    const found = this.#anyOfBerth();
    if (found === undefined) return;
    const { site, id } = found;
    const { cluster } = site.model;
    // A machine whose disks are its node's cannot be taken over by another one.
    if (cluster.state.nodes.some(({ isOnline }) => !isOnline)) return;
    cluster.state.ha[`vm:${id}`] = { state: site.isRunning(id) ? "started" : "stopped" };
    cluster.wakeHa();
    this.#say(site, `puts ${id} under high availability`);
    if (this.#dice.chance(0.5)) return;
    this.#world.clock.after(this.#dice.between(5_000, 60_000), () => this.letGo(site, id));
  }

  /** Takes a machine out of high availability. */
  letGo(site: Site, id: string): void {
    Reflect.deleteProperty(site.model.cluster.state.ha, `vm:${id}`);
    this.#say(site, `takes ${id} out of high availability`);
  }

  /** What a remedy asks of a person. */
  clearLock(site: Site, id: string): void {
    site.model.setLock(Number(id), undefined);
    site.backups.delete(id);
    this.#say(site, `unlocks ${id}`);
  }

  /** Removes a volume that nothing refers to. */
  removeVolume(site: Site, name: string): void {
    takeVolume(site, name);
    this.#say(site, `removes the volume ${name}`);
  }

  /** Removes a machine and every volume that bears its id. */
  clear(site: Site, id: string): void {
    this.#destroy(site, id);
    this.#say(site, `removes whatever there is of ${id}`);
  }

  #destroy(site: Site, id: string): void {
    site.model.killMachine(Number(id));
    site.model.removeGuestFile(Number(id));
    for (const volumes of Object.values(site.model.cluster.state.volumes)) {
      const own = volumes.filter(({ vmid }) => vmid === Number(id));
      // In place: work that goes on at this moment holds the same list.
      for (const volume of own) volumes.splice(volumes.indexOf(volume), 1);
      for (const volume of own) site.goneByHand.add(volume);
    }
    Reflect.deleteProperty(site.model.cluster.state.ha, `vm:${id}`);
    site.guests.delete(id);
    site.backups.delete(id);
    site.personActed(id);
  }

  /** With the machine went the proof of what the Claim does not know yet: nobody can tell it. */
  #disown(site: Site, id: string, text = ""): void {
    const claim = this.#world.records.claimOf(site.name, id)?.spec ?? {};
    for (const { key, backing, name, vmid } of site.guestVolumes()) {
      if (vmid !== id || text.includes(name) || isProvable(claim, { backing, name })) continue;
      site.volumes.set(key, { by: "nobody", uid: undefined });
    }
  }

  #makeStranger(site: Site, id: string, { mark, node }: Likeness = {}): void {
    const notes = mark === undefined ? "" : `${mark}\n`;
    const anywhere = this.#dice.pick(["pve1", "pve2", "pve3"]);
    const where = this.#dice.chance(0.7) ? (node ?? anywhere) : anywhere;
    const text = `${notes}name: stranger\nmemory: 512\nsmbios1: uuid=${strangerUuid}\n`;
    site.model.writeGuestFile(where, Number(id), text);
    site.personActed(id);
  }

  /** A machine of Berth's on which nothing is under way at this moment. */
  #anyOfBerth(isOne: (site: Site, id: string) => boolean = () => true): Found | undefined {
    const site = this.#anySite();
    const ids = [...site.guests]
      .filter(([id, { by }]) => by === "berth" && !this.#isBusy(site, id))
      .map(([id]) => id)
      .filter((id) => isOne(site, id));
    const id = this.#dice.pickAny(ids);
    return id === undefined ? undefined : { site, id };
  }

  /**
   * A request about it is on its way, or a worker is at it. Between the look that proves a machine
   * Berth's own and the request that rests on it no hypervisor offers a guard, so what people do in
   * that instant is not Berth's to answer for; see docs/simulation.md.
   */
  #isBusy(site: Site, id: string): boolean {
    const wire = this.#world.wires.get(site.name);
    if ((wire?.effects.get(id) ?? 0) > 0 || wire?.beginning.get(id)?.isDead === false) return true;
    return !site.model.cluster.isQuorate() || site.isWorkedOn(id);
  }

  /** A machine of Berth's that nothing is on its way to: what is decided of it was not sent yet. */
  #isQuietHere(site: Site, id: string): boolean {
    const effects = this.#world.wires.get(site.name)?.effects.get(id) ?? 0;
    const isFree = effects === 0 && !site.isWorkedOn(id);
    return site.model.cluster.isQuorate() && isFree && site.guests.get(id)?.by === "berth";
  }

  #hasStood(site: Site, id: string): boolean {
    return this.#world.records.claimOf(site.name, id)?.spec.everExisted === true;
  }

  #isClaimed(site: Site, id: string): boolean {
    return this.#world.records.claimOf(site.name, id) !== undefined;
  }

  #anySite(): Site {
    const sites = [...this.#world.sites.values()];
    const site = this.#dice.pickAny(sites);
    if (site === undefined) throw new Error("there is no cluster");
    return site;
  }

  #say(site: Site, what: string): void {
    this.#world.trace.say("people", () => `on ${site.name}: somebody ${what}`);
  }
}
