import type { Clock } from "../../kernel/clock.ts";
import type { ClusterState, Release, Timing } from "../proxmox/index.ts";
import { ProxmoxModel, smallCluster, tokenName, tokenUser } from "../proxmox/index.ts";
import type { Dice } from "./dice.ts";
import { livesOn } from "./heirs.ts";
import { inventoryOf } from "./inventory.ts";
import { canary } from "./laws-secrets.ts";
import { Touches } from "./touches.ts";
import { Violation } from "./violation.ts";
import { fetchFromWeb } from "./web-images.ts";

/** Who made something that stands on a hypervisor, and when it was last seen how. */
export interface Origin {
  /** Nobody: it cannot be told any more whose it is, so it may stay and may go. */
  readonly by: "berth" | "person" | "nobody";
  /** The object that it was made for; known if Berth made it. */
  readonly uid: string | undefined;
}

/** When a guest under an id was last in some state, on the monotonic clock; and how it is now. */
interface Sightings {
  runningMs: number;
  stoppedMs: number;
  absentMs: number;
  now: "runningMs" | "stoppedMs" | "absentMs";
}

/** A stranger's guest as it must stay. */
interface Keepsake {
  readonly node: string;
  readonly text: string;
  readonly isRunning: boolean;
}

export interface GuestVolume {
  readonly key: string;
  readonly backing: string;
  readonly name: string;
  readonly vmid: string;
  readonly volume: { readonly sizeBytes: number };
}

export interface SiteOptions {
  readonly name: string;
  readonly release: Release;
  readonly clock: Clock;
  readonly dice: Dice;
}

const nodes = ["pve1", "pve2", "pve3"];

/** A simulated cluster, and what is true of it: who made what, whatever anybody believes. */
export class Site {
  readonly name: string;
  readonly release: Release;
  readonly model: ProxmoxModel;
  readonly clock: Clock;
  readonly tokenId = `${tokenUser}!${tokenName}`;
  /** What the cluster accepts now. Whoever uses it has it from the Secret, which may be older. */
  tokenSecret = canary;
  readonly nodes = nodes;
  readonly guests = new Map<string, Origin>();
  /** By backing and name. */
  readonly volumes = new Map<string, Origin>();
  /** Those that ever were, by the same: an Orphan may tell of each. */
  readonly everVolumes = new Set<string>();
  /** A guest of Berth's was destroyed, and not by a person; a placeholder is none. May throw. */
  onGone: (id: string, origin: Origin) => void = () => undefined;
  /** The same of a volume, by its name. */
  onVolumeGone: (name: string) => void = () => undefined;
  /** Volumes that a person took away. */
  readonly goneByHand = new WeakSet<object>();
  /** What was there beside machines before Berth came. */
  readonly before: readonly string[];
  /** Ids under which a person ever did something. */
  readonly handled = new Set<string>();
  /** For which object a create was last sent, by id. */
  readonly creates = new Map<string, string>();
  /** Ids of which a task was forgotten: what that made bears no sign of who made it. */
  readonly forgotten = new Set<string>();
  /** Where people took machines, as node:id. */
  readonly moves = new Set<string>();
  /** Volumes that were left to people with their machine, or without it. */
  readonly letGo = new Set<string>();
  /** The volumes themselves, by backing and name, and whose they are. */
  readonly #objects = new Map<string, object>();
  readonly #origins = new WeakMap<object, Origin>();
  readonly #timing: Timing;
  readonly touches = new Touches();
  readonly #keepsakes = new Map<string, Keepsake>();
  readonly #sightings = new Map<string, Sightings>();
  /** Machines that somebody holds for a backup: the lock is the person's until it is taken off. */
  readonly backups = new Set<string>();
  /** What the cluster had done when it was last looked at: nothing else changes it. */
  #activity = -1;
  /** What was last found of a guest's file, which is asked for after every event. */
  readonly #empty = new Map<string, { readonly text: string; readonly isEmpty: boolean }>();
  /** The volumes as the last survey left them: backings and their volumes' names and owners. */
  #surveyed: readonly unknown[] = [];

  constructor({ name, release, clock, dice }: SiteOptions) {
    this.name = name;
    this.release = release;
    this.clock = clock;
    const [{ random }, { tokenSecret }] = [dice, this];
    const options = { release, nodes, clock, random, password: "secret", tokenSecret };
    const state = smallCluster(options);
    this.model = new ProxmoxModel({ state, clock, random, fetch: fetchFromWeb });
    this.#timing = this.model.cluster.timing;
    this.before = inventoryOf(this.model.cluster.state);
    this.survey();
  }

  /** Somebody takes Berth's account its right to log in, or gives it back. */
  letIn(isEnabled: boolean): void {
    for (const user of this.#accounts()) user.isEnabled = isEnabled;
  }

  /** Somebody makes the token anew: what the Secret has is worth nothing any more. */
  replaceToken(secret: string): void {
    this.tokenSecret = secret;
    for (const { tokens } of this.#accounts()) for (const token of tokens) token.secret = secret;
  }

  #accounts(): ClusterState["users"] {
    return this.model.cluster.state.users.filter(({ userid }) => userid === tokenUser);
  }

  /** The record of a task is gone; its worker, if it is still at it, goes on. */
  forgetTask(upid: string): void {
    this.forgotten.add(upid.split(":")[6] ?? "");
    for (const node of this.model.cluster.state.nodes) {
      node.tasks = node.tasks.filter((task) => task.upid !== upid);
    }
  }

  /** Copies, starts and stops take so much longer from here on. */
  slowDown(byMs: number): void {
    const { cluster } = this.model;
    const { startMs, stopMs } = this.#timing;
    cluster.slowStorageMs = byMs;
    cluster.timing = { ...this.#timing, startMs: startMs + byMs, stopMs: stopMs + byMs };
  }

  isWorkedOn(id: string): boolean {
    return this.model.cluster.processes.list().some(({ name }) => name.includes(id));
  }

  text(id: string): string | undefined {
    return this.model.cluster.state.guests[id]?.text;
  }

  isRunning(id: string): boolean {
    const { cluster } = this.model;
    const node = cluster.state.guests[id]?.node;
    return node !== undefined && cluster.findNode(node)?.machines[id] !== undefined;
  }

  /** One line of a guest's file, as "memory" or "scsi0"; snapshots and pending changes aside. */
  value(id: string, key: string): string | undefined {
    const text = this.text(id) ?? "";
    const end = text.search(/^\[/m);
    const start = text.startsWith(`${key}: `) ? 0 : text.indexOf(`\n${key}: `) + 1;
    if (start === 0 && !text.startsWith(`${key}: `)) return undefined;
    if (end >= 0 && start >= end) return undefined;
    return text.slice(start + key.length + 2).split("\n", 1)[0];
  }

  /** Only a reserved id with a lock: nothing of a machine is written yet. */
  isEmptyReservation(id: string): boolean {
    const text = this.text(id) ?? "";
    const known = this.#empty.get(id);
    if (known?.text === text) return known.isEmpty;
    const isEmpty = this.value(id, "name") === undefined;
    this.#empty.set(id, { text, isEmpty });
    return isEmpty;
  }

  /** The guests that Berth made for an object. */
  guestsOf(uid: string): string[] {
    return [...this.guests].filter(([, origin]) => origin.uid === uid).map(([id]) => id);
  }

  /** The configurations of the guests that Berth made, by id. */
  filesOfBerth(): Map<string, string> {
    const ids = [...this.guests].filter(([, { by }]) => by === "berth").map(([id]) => id);
    return new Map(ids.map((id) => [id, this.text(id) ?? ""]));
  }

  /** The volumes of a machine that have this name, themselves: a name changes with the owner. */
  volumesNamed(id: string, vmid: string): object[] {
    const name = id.slice(id.indexOf(":") + 1);
    const all = Object.values(this.model.cluster.state.volumes).flat();
    return all.filter((volume) => volume.name === name && volume.vmid === Number(vmid));
  }

  /** Whether one of them is still there, or a person took one away. */
  hasAny(volumes: readonly object[]): boolean {
    const { cluster } = this.model;
    return volumes.some((volume) => livesOn(volume, cluster) || this.goneByHand.has(volume));
  }

  wasThereWithin(id: string, ms: number): boolean {
    const { runningMs, stoppedMs, now } = this.#seen(id);
    return now !== "absentMs" || Math.max(runningMs, stoppedMs) >= this.clock.monotonicMs() - ms;
  }

  wasAbsentWithin(id: string, ms: number): boolean {
    // What somebody else made under its id is not the machine.
    if (this.guests.get(id)?.by !== "berth") return true;
    return this.#seen(id).absentMs >= this.clock.monotonicMs() - ms;
  }

  hadPowerWithin(id: string, power: "Running" | "Stopped", ms: number): boolean {
    const seen = this.#seen(id);
    const state = power === "Running" ? "runningMs" : "stoppedMs";
    return seen.now === state || seen[state] >= this.clock.monotonicMs() - ms;
  }

  /** What a person just did, or what happens to everybody: strangers' things may look anew. */
  personActed(...ids: readonly string[]): void {
    for (const id of ids) {
      this.handled.add(id);
      if (this.text(id) === undefined) this.guests.delete(id);
      else this.guests.set(id, { by: "person", uid: undefined });
    }
    this.touched(...ids);
    this.#surveyed = [];
    this.#volumesOf("person", new Set(ids.map(Number)));
    for (const [id, origin] of this.guests) if (origin.by === "person") this.#remember(id);
  }

  /** Somebody's hands were at these ids, or anywhere: the next survey has to look. */
  touched(...ids: readonly string[]): void {
    this.touches.note(ids);
    this.#activity = -1;
  }

  /**
   * Looks at everything, if anything may have changed: answers whether it did. Throws if something
   * of a stranger's is not as the stranger left it.
   */
  survey(): boolean {
    const { activity } = this.model.cluster;
    if (activity === this.#activity) return false;
    this.#activity = activity;
    this.#look();
    return true;
  }

  #look(): void {
    const { guests } = this.model.cluster.state;
    const nowMs = this.clock.monotonicMs();
    // As it was when it was last looked at, so it was until now.
    for (const seen of this.#sightings.values()) seen[seen.now] = nowMs;
    for (const id of this.guests.keys()) if (guests[id] === undefined) this.#gone(id);
    for (const id in guests) {
      if (!this.guests.has(id)) this.guests.set(id, { by: "berth", uid: this.creates.get(id) });
      this.#seen(id);
    }
    for (const [id, seen] of this.#sightings) seen.now = this.#stateOf(id);
    if (!this.#hasSurveyedVolumes()) {
      this.#volumesOf("berth", undefined);
      this.#surveyed = this.#volumeMarks();
    }
    for (const [id, keepsake] of this.#keepsakes) this.#demandUntouched(id, keepsake);
    for (const id of this.backups) this.#demandLocked(id);
  }

  #demandLocked(id: string): void {
    if (this.text(id) === undefined) this.backups.delete(id);
    else if (this.value(id, "lock") !== "backup") {
      throw new Violation(3, `the lock of a backup of ${id} on ${this.name} was broken`);
    }
  }

  /** Volumes of guests by backing and name, with the id that they bear. */
  *guestVolumes(): Generator<GuestVolume> {
    for (const [backing, volumes] of Object.entries(this.model.cluster.state.volumes)) {
      for (const volume of volumes) {
        const { name, vmid } = volume;
        if (vmid === undefined) continue;
        yield { key: `${backing}/${name}`, backing, name, vmid: String(vmid), volume };
      }
    }
  }

  /** Whether the volumes are the very same as at the last survey: then nothing is to be learned. */
  #hasSurveyedVolumes(): boolean {
    const { volumes } = this.model.cluster.state;
    const marks = this.#surveyed;
    let place = 0;
    for (const backing in volumes) {
      if (marks[place++] !== backing) return false;
      for (const { name, vmid } of volumes[backing] ?? []) {
        if (marks[place++] !== name || marks[place++] !== vmid) return false;
      }
    }
    return place === marks.length;
  }

  #volumeMarks(): unknown[] {
    const { volumes } = this.model.cluster.state;
    return Object.entries(volumes).flatMap(([backing, list]) => {
      return [backing, ...list.flatMap(({ name, vmid }) => [name, vmid])];
    });
  }

  #gone(id: string): void {
    const origin = this.guests.get(id);
    if (origin?.by === "person") {
      throw new Violation(3, `the stranger's machine ${id} on ${this.name} is gone`);
    }
    this.guests.delete(id);
    if (origin !== undefined && this.#empty.get(id)?.isEmpty !== true) this.onGone(id, origin);
  }

  #stateOf(id: string): Sightings["now"] {
    if (this.text(id) === undefined) return "absentMs";
    return this.isRunning(id) ? "runningMs" : "stoppedMs";
  }

  #seen(id: string): Sightings {
    let seen = this.#sightings.get(id);
    if (seen === undefined) {
      const never = -Infinity;
      seen = { runningMs: never, stoppedMs: never, absentMs: never, now: "absentMs" };
      this.#sightings.set(id, seen);
    }
    return seen;
  }

  /** New volumes belong to whoever acted; those that are gone are forgotten. */
  #volumesOf(by: Origin["by"], onlyIds: ReadonlySet<number> | undefined): void {
    const there = new Map<string, object>();
    for (const found of this.guestVolumes()) {
      there.set(found.key, found.volume);
      if (!this.volumes.has(found.key)) this.#newVolume(found, by, onlyIds);
    }
    for (const [key, volume] of this.#forget(there)) {
      const origin = this.volumes.get(key);
      this.volumes.delete(key);
      this.#objects.delete(key);
      if (by !== "berth" || origin === undefined) continue;
      if (!livesOn(volume ?? origin, this.model.cluster)) this.#volumeGone(key, origin);
    }
  }

  #newVolume(
    { key, vmid, volume }: GuestVolume,
    by: Origin["by"],
    onlyIds: ReadonlySet<number> | undefined,
  ): void {
    // Handed over to another machine, it has another name and is the same.
    const known = this.#origins.get(volume);
    if (known === undefined && onlyIds?.has(Number(vmid)) === false) return;
    const made = { by, uid: by === "berth" ? this.creates.get(vmid) : undefined };
    this.volumes.set(key, known ?? made);
    this.everVolumes.add(key);
  }

  /** Remembers the volumes that are there, and answers which are not, by what they were. */
  #forget(there: ReadonlyMap<string, object>): [key: string, volume: object | undefined][] {
    const gone: [string, object | undefined][] = [];
    for (const [key, origin] of this.volumes) {
      const volume = there.get(key);
      if (volume === undefined) gone.push([key, this.#objects.get(key)]);
      else this.#origins.set(volume, origin);
      if (volume !== undefined) this.#objects.set(key, volume);
    }
    return gone;
  }

  #volumeGone(key: string, origin: Origin): void {
    if (origin.by === "person") {
      throw new Violation(3, `the stranger's volume ${key} on ${this.name} is gone`);
    }
    if (origin.by === "berth") this.onVolumeGone(key.replace(/^.*\//, ""));
  }

  #remember(id: string): void {
    const file = this.model.cluster.state.guests[id];
    if (file === undefined) {
      this.#keepsakes.delete(id);
      return;
    }
    const { node, text } = file;
    this.#keepsakes.set(id, { node, text, isRunning: this.isRunning(id) });
  }

  #demandUntouched(id: string, keepsake: Keepsake): void {
    const file = this.model.cluster.state.guests[id];
    if (this.guests.get(id)?.by !== "person") return void this.#keepsakes.delete(id);
    const isSame =
      file?.text === keepsake.text &&
      file.node === keepsake.node &&
      this.isRunning(id) === keepsake.isRunning;
    if (!isSame) throw new Violation(3, `the stranger's machine ${id} on ${this.name} was changed`);
  }
}
