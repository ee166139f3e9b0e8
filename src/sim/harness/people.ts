import { secretResource } from "../../api/builtin/index.ts";
import { annotations, hypervisorKind, virtualMachineKind, vmImageKind } from "../../api/index.ts";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import type { Dice } from "./dice.ts";
import { canary } from "./laws-secrets.ts";
import { isPaused } from "./readiness.ts";
import type { Site } from "./site.ts";
import { webImage, webImageName } from "./web-images.ts";
import { credentialsOf, type World } from "./world.ts";

const gib = "Gi";
const vmNames = ["web", "db", "mail", "ci"] as const;
/** Ids that people choose themselves: few, so that they collide. */
export const chosenIds = ["300", "301"] as const;

/** Always of one size: a disk that comes back can be as it was. */
const dataDisk = { name: "data", size: "3Gi" };

/** What is not left to chance. */
type Said = Partial<Pick<WrittenVirtualMachineSpec, "externalId" | "source" | "hypervisorRef">>;

interface Declared {
  readonly name: string;
  readonly spec: WrittenVirtualMachineSpec;
}

/** People who declare: what they create, edit and delete through the API. */
export class People {
  readonly #world: World;
  readonly #dice: Dice;
  /** Names that somebody is about to use. */
  readonly #declaring = new Set<string>();
  /** What was asked of the API and has no answer yet. */
  pending = 0;

  constructor(world: World, dice: Dice) {
    this.#world = world;
    this.#dice = dice;
  }

  /** A machine under a name that is free; nothing if all are taken. Answers what was declared. */
  declare(said: Said = {}): Declared | undefined {
    const free = vmNames.filter((name) => {
      return this.vm(name) === undefined && !this.#declaring.has(name);
    });
    const name = this.#dice.pickAny(free);
    if (name === undefined) return undefined;
    const spec: WrittenVirtualMachineSpec = { ...this.#newSpec(), ...said };
    this.#declaring.add(name);
    this.#world.clock.after(5_000, () => this.#declaring.delete(name));
    this.#create(name, spec);
    return { name, spec };
  }

  /** A machine on this very cluster, from its image if it takes any. */
  declareOn({ name, release }: Site, image = `debian-${name}`): void {
    const source = release === "7.4" ? { blank: {} } : { image: { name: image } };
    this.declare({ hypervisorRef: { name }, source });
  }

  /** An image that the cluster has to fetch. */
  declareImage({ name }: Site): void {
    if (this.#world.records.images.has(`default/${webImageName(name)}`)) return;
    this.ask(`declares the image ${webImageName(name)}`, (client) => {
      return client.of(vmImageKind).create(webImage(name));
    });
  }

  /** Those that were fetched; true if there are none any more. */
  deleteImages(): boolean {
    const names = [...this.#world.sites.keys()].map((site) => webImageName(site));
    const { images } = this.#world.records;
    const left = names.filter((name) => images.has(`default/${name}`));
    for (const name of left) {
      if (images.get(`default/${name}`)?.metadata.deletionTimestamp !== undefined) continue;
      this.ask(`deletes the image ${name}`, (client) => {
        return client.of(vmImageKind).delete({ namespace: "default", name });
      });
    }
    return left.length === 0;
  }

  #create(name: string, spec: WrittenVirtualMachineSpec): void {
    // An object of a name is not made while the machine of an earlier one stands: it would wait.
    if (this.#world.orphanLaws.isLeftBehind(name)) return;
    this.ask(`declares ${name}: ${JSON.stringify(spec)}`, (client) => {
      return client.of(virtualMachineKind).create({
        apiVersion: "berth.dev/v1alpha1",
        kind: "VirtualMachine",
        metadata: { namespace: "default", name },
        spec,
      });
    });
  }

  edit(): void {
    const vm = this.#any();
    if (vm === undefined) return;
    const { name = "" } = vm.metadata;
    const spec = this.#newEdit(vm);
    this.change(name, { spec });
  }

  /** Changes fields of an object, as `kubectl patch` would. */
  change(name: string, merge: object): void {
    this.ask(`changes ${name}: ${JSON.stringify(merge)}`, (client) => {
      return client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge });
    });
  }

  pause(): void {
    const name = this.#any()?.metadata.name;
    if (name !== undefined) this.pauseFor(name, this.#pauseMs());
  }

  /** In the middle of some work, best of all of what takes something away or back. */
  pauseUnderWay(): void {
    const working = [...this.#world.records.vms.values()].filter(isUnderWay);
    const vm = this.#dice.pickAny(working.filter(isUndoing)) ?? this.#dice.pickAny(working);
    if (vm !== undefined) this.pauseFor(vm.metadata.name ?? "", this.#pauseMs());
  }

  /** In the middle of its creation, or of any other work. */
  removeUnderWay(): void {
    const working = this.standing().filter(isUnderWay);
    const vm = this.#dice.pickAny(working.filter(isNew)) ?? this.#dice.pickAny(working);
    if (vm !== undefined) this.delete(vm.metadata.name ?? "");
  }

  pauseFor(name: string, ms: number): void {
    this.change(name, paused("true"));
    this.#world.clock.after(ms, () => this.change(name, paused(null)));
  }

  #pauseMs(): number {
    return this.#dice.between(5_000, 60_000);
  }

  /** A pause that reached the API after its end would last for ever. */
  resumeAll(): void {
    for (const { metadata } of this.#world.records.vms.values()) {
      if (isPaused({ metadata })) this.change(metadata.name ?? "", paused(null));
    }
  }

  /** Somebody changes something and takes it back before it is done. */
  flipFlop(): void {
    const vm = this.#any();
    if (vm === undefined) return;
    const { name = "" } = vm.metadata;
    const { cpu, memory, powerState } = vm.spec;
    this.change(name, { spec: this.#newEdit(vm) });
    const undone = { cpu, memory, powerState };
    this.#world.clock.after(this.#dice.between(20, 5_000), () => {
      this.change(name, { spec: undone });
    });
  }

  /** Deletes an object and declares another one under its name, as soon as that is possible. */
  declareAnew(): void {
    const name = this.#any()?.metadata.name;
    if (name === undefined) return;
    const spec = this.#newSpec();
    this.delete(name);
    this.pending += 1;
    this.#whenGone(name, 60, (isGone) => {
      this.pending -= 1;
      if (isGone) this.#create(name, spec);
    });
  }

  /** Looks every second whether an object that is being deleted is gone, so often at most. */
  #whenGone(name: string, times: number, then: (isGone: boolean) => void): void {
    this.#world.clock.after(1_000, () => {
      const vm = this.vm(name);
      const isStanding = vm !== undefined && vm.metadata.deletionTimestamp === undefined;
      if (vm === undefined || times === 0 || isStanding) then(vm === undefined);
      else this.#whenGone(name, times - 1, then);
    });
  }

  /** `berth retry`, for everything. */
  retryAll(): void {
    const now = String(this.#world.clock.nowMs());
    for (const { metadata } of this.#world.records.vms.values()) {
      const asked = { annotations: { [annotations.reconcileAt]: now } };
      this.change(metadata.name ?? "", { metadata: asked });
    }
  }

  remove(): void {
    const name = this.#any()?.metadata.name;
    if (name !== undefined) this.delete(name);
  }

  delete(name: string): void {
    this.ask(`deletes ${name}`, (client) => {
      return client.of(virtualMachineKind).delete({ namespace: "default", name });
    });
  }

  vm(name: string): VirtualMachine | undefined {
    return this.#world.records.vms.get(`default/${name}`);
  }

  /** Objects that nobody is deleting. */
  standing(): VirtualMachine[] {
    return [...this.#world.records.vms.values()].filter(({ metadata }) => {
      return metadata.deletionTimestamp === undefined;
    });
  }

  #any(): VirtualMachine | undefined {
    return this.#dice.pickAny(this.standing());
  }

  /** Somebody makes Berth's token anew, and writes its Secret some time later. */
  replaceToken(site: Site): void {
    // Whoever finds the new secret somewhere finds the word that no one may read, too.
    site.replaceToken(`${canary}-${this.#dice.between(0, 10 ** 9)}`);
    this.#world.trace.say("people", () => `make the token of ${site.name} anew`);
    this.#after(this.#dice.between(100, 60_000), () => this.#writeSecret(site));
  }

  /** What somebody has still to do. */
  #after(ms: number, act: () => void): void {
    this.pending += 1;
    this.#world.clock.after(ms, () => {
      this.pending -= 1;
      act();
    });
  }

  #writeSecret(site: Site): void {
    this.#insist(`write the Secret of ${site.name}`, (client) => {
      const key = { namespace: "berth-system", name: site.name };
      return client.of(secretResource).patch(key, { merge: { data: credentialsOf(site) } });
    });
  }

  /** Berth has to connect anew, whatever is under way. */
  changeHypervisor(site: Site): void {
    const limits = { pollSeconds: this.#dice.between(10, 15) };
    this.#changeHypervisor(site, { spec: { limits } });
  }

  /** The cluster has another release, and somebody says some time later that Berth should look. */
  upgrade(site: Site): void {
    const { trace, clock } = this.#world;
    const { release } = site.model.cluster.state;
    const next = release === "7.4" ? "8.4" : "9.2";
    if (release === next) return;
    site.model.upgrade(next);
    trace.say("people", () => `upgrade ${site.name} to ${next}`);
    this.#after(this.#dice.between(1_000, 60_000), () => {
      const asked = { [annotations.reconcileAt]: String(clock.nowMs()) };
      this.#changeHypervisor(site, { metadata: { annotations: asked } });
    });
  }

  #changeHypervisor({ name }: Site, merge: object): void {
    this.#insist(`change the Hypervisor ${name}: ${JSON.stringify(merge)}`, (client) => {
      return client.of(hypervisorKind).patch({ name }, { merge });
    });
  }

  /** Asks until it is done: who changes what all machines need does not rest before. */
  #insist(what: string, ask: (client: Client) => Promise<unknown>): void {
    this.ask(what, ask, () => this.#after(1_000, () => this.#insist(what, ask)));
  }

  /** People try again until somebody answers; a refusal is an answer, to most of them. */
  ask(
    what: string,
    ask: (client: Client) => Promise<unknown>,
    onRefusal: () => void = () => undefined,
  ): void {
    const { trace, clock, house, client } = this.#world;
    this.pending += 1;
    let isHeard = false;
    const heard = (answer: string): void => {
      if (isHeard) return;
      isHeard = true;
      this.pending -= 1;
      trace.say("people", () => `${what}: ${answer}`);
      if (answer !== "done") onRefusal();
    };
    const attempt = (): void => {
      if (isHeard) return;
      if (!house.isOpen) {
        clock.after(1_000, attempt);
        return;
      }
      ask(client).then(
        () => heard("done"),
        (error: unknown) => heard(String(error)),
      );
    };
    trace.say("people", () => what);
    attempt();
    // A crash of the API leaves its callers without an answer.
    clock.after(60_000, () => heard("no answer"));
  }

  #newSpec(): WrittenVirtualMachineSpec {
    const dice = this.#dice;
    const { sites } = this.#world;
    const site = dice.pickAny([...sites.values()]);
    const hasImages = site?.release !== "7.4";
    const name = site?.name ?? "";
    const fromImage = hasImages && dice.chance(0.75);
    return {
      hypervisorRef: { name },
      cpu: { cores: dice.between(1, 4) },
      memory: { size: `${dice.between(1, 4) * 512}Mi` },
      source: fromImage ? { image: { name: `debian-${name}` } } : { blank: {} },
      disks: [{ name: "root", size: `${dice.between(3, 6)}${gib}` }, ...this.#newData()],
      networks: [{ name: "lan", bridge: "vmbr0" }],
      powerState: dice.chance(0.8) ? "Running" : "Stopped",
      ...(dice.chance(0.2) ? { firmware: { type: "UEFI" } } : {}),
      ...(dice.chance(0.25) ? { cloudInit: { userData: userDataFor(fromImage) } } : {}),
      updatePolicy: dice.pick(["Live", "Reboot", "PowerOff"]),
      shutdown: { graceSeconds: dice.pick([2, 5, 20]) },
      ...this.#newPolicies(),
    };
  }

  #newData(): (typeof dataDisk & { onDelete?: "Retain" })[] {
    if (!this.#dice.chance(0.4)) return [];
    // A third of them is to outlive its machine.
    return [{ ...dataDisk, ...(this.#dice.chance(0.33) ? { onDelete: "Retain" } : {}) }];
  }

  #newPolicies(): Pick<WrittenVirtualMachineSpec, "onMissing" | "deletionPolicy" | "externalId"> {
    const dice = this.#dice;
    return {
      ...(dice.chance(0.3) ? { onMissing: "Recreate" } : {}),
      ...(dice.chance(0.15) ? { deletionPolicy: "Retain" } : {}),
      ...(dice.chance(0.25) ? { externalId: dice.pick(chosenIds) } : {}),
    };
  }

  #newEdit({ spec }: VirtualMachine): object {
    const dice = this.#dice;
    const root = spec.disks?.[0];
    const size = Number.parseInt(root?.size ?? "3", 10) + 1;
    return dice.pick<() => object>([
      () => ({ cpu: { cores: dice.between(1, 4) } }),
      () => ({ memory: { size: `${dice.between(1, 4) * 512}Mi` } }),
      () => ({ powerState: dice.pick(["Running", "Stopped", "Suspended"]) }),
      () => ({ disks: withOrWithoutData(spec.disks ?? []) }),
      () => ({ disks: (spec.disks ?? []).map((disk) => destroyed(disk)) }),
      () => ({ networks: [...(spec.networks ?? []).slice(0, 1), ...extraCard(spec)] }),
      () => ({ disks: [{ ...root, size: `${size}${gib}` }, ...(spec.disks ?? []).slice(1)] }),
    ])();
  }
}

type Disk = NonNullable<VirtualMachine["spec"]["disks"]>[number];

/** Takes the second disk off, or puts it back under its name. */
function withOrWithoutData(disks: readonly Disk[]): object[] {
  const others = disks.filter(({ name }) => name !== "data");
  return others.length < disks.length ? others : [...others, dataDisk];
}

/** The second disk is to be destroyed. */
function destroyed(disk: Disk): object {
  return disk.name === "data" ? { ...disk, state: "Absent" } : disk;
}

function isUnderWay({ status }: VirtualMachine): boolean {
  return status?.operation !== undefined;
}

function isUndoing({ status }: VirtualMachine): boolean {
  return /^(Destroy|Remove|Clear|Detach|Release|TransferDisk)/.test(status?.operation?.step ?? "");
}

function isNew({ status }: VirtualMachine): boolean {
  return status?.appliedGeneration === undefined;
}

function extraCard({ networks = [] }: VirtualMachine["spec"]): object[] {
  return networks.length > 1 ? [] : [{ name: "dmz", bridge: "vmbr0", vlan: 5 }];
}

/** Half of it is nobody's business. */
function userDataFor(isSecret: boolean): { inline: string } | { secretRef: { name: string } } {
  return isSecret ? { secretRef: { name: "user-data" } } : { inline: "#cloud-config\n" };
}

function paused(value: string | null): object {
  return { metadata: { annotations: { [annotations.paused]: value } } };
}
