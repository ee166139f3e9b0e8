import { configMapResource, namespaceResource, secretResource } from "../../api/builtin/index.ts";
import { hypervisorKind, vmImageKind, type ClaimSpec } from "../../api/index.ts";
import { createClient, inProcess, type Client } from "../../client/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createMetrics, type Metrics } from "../../runtime/index.ts";
import type { Release } from "../proxmox/index.ts";
import { Dice } from "./dice.ts";
import { House } from "./house.ts";
import { Laws } from "./laws.ts";
import { ObjectLaws } from "./laws-objects.ts";
import { OrderLaws } from "./laws-order.ts";
import { OrphanLaws } from "./laws-orphans.ts";
import { canary, demandNoSecret } from "./laws-secrets.ts";
import { demandSound } from "./laws-sound.ts";
import { demandWhy } from "./laws-why.ts";
import { Program, type ApiWeather } from "./program.ts";
import { Records } from "./records.ts";
import { Site } from "./site.ts";
import { Trace } from "./trace.ts";
import { Watcher } from "./watcher.ts";
import { fairWeather, Wire, type Weather } from "./wire.ts";

/** Where Berth lives: all in one process, or two controllers beside an API that stays up. */
export type Home = "embedded" | "replicas";

/** How soon what nothing declares is taken away, where it is. */
export interface CleanUp {
  readonly graceSeconds: number;
  readonly sweepSeconds: number;
}

export interface WorldOptions {
  readonly seed: number;
  readonly home: Home;
  readonly releases: Readonly<Record<string, Release>>;
  readonly listen: ((line: string) => void) | undefined;
  /** The Hypervisors say DeleteOwned; absent: what nothing declares is only told of. */
  readonly cleanUp?: CleanUp | undefined;
}

/** To count costs some of a history's time, so only one in so many does. */
const countedEvery = 4;
const namespaces = ["default", "berth-system"];

/** Everything that there is in a history: two clusters, the API, the programs, one clock. */
export class World {
  readonly clock = new VirtualClock();
  readonly trace: Trace;
  readonly records = new Records();
  readonly sites = new Map<string, Site>();
  readonly wires = new Map<string, Wire>();
  readonly weather = new Map<string, Weather>();
  readonly apiWeather: ApiWeather[] = [];
  readonly house: House;
  readonly laws: Laws;
  readonly orphanLaws: OrphanLaws;
  readonly cleanUp: CleanUp | undefined;
  readonly home: Home;
  readonly programs: Program[] = [];
  /** As a person uses the API. */
  readonly client: Client;
  /** People who watch, beside the programs. */
  readonly watchers = {
    vms: this.#watcherOf("virtualmachines"),
    claims: this.#watcherOf("claims"),
  };
  /** What each process that there was has counted. */
  readonly metrics: Metrics[] = [];
  /** Since when the kinds are being deleted, on the monotonic clock. */
  kindsGoSinceMs: number | undefined;
  /** The first law that was broken where nobody could be told at once. */
  broken: unknown;
  /** The faults have ended: nobody begins anything new. */
  isCalm = false;
  /** How often a program was started. */
  starts = 0;
  readonly #seed: number;

  constructor({ seed, home, releases, listen, cleanUp }: WorldOptions) {
    const { clock, records, sites } = this;
    this.#seed = seed;
    this.home = home;
    this.cleanUp = cleanUp;
    this.trace = new Trace(clock, listen);
    const nowMs = (): number => clock.nowMs();
    this.laws = new Laws(records, sites, nowMs);
    const orphanLaws = new OrphanLaws({ records, sites, nowMs });
    this.orphanLaws = orphanLaws;
    this.laws.orphanOf = (site, request, what) => orphanLaws.intentOf(site, request, what);
    const objectLaws = new ObjectLaws({ records, sites, wires: this.wires, nowMs });
    for (const [name, release] of Object.entries(releases)) {
      const site = new Site({ name, release, clock, dice: Dice.of(seed, `site ${name}`) });
      const weather = { ...fairWeather };
      site.onGone = (id, origin) => this.laws.whenGone(site, id, origin);
      site.onVolumeGone = (volume) => this.laws.whenVolumeGone(site, volume);
      sites.set(name, site);
      this.weather.set(name, weather);
      this.wires.set(name, this.#wireTo(site, weather));
    }
    const onOpen = (): void => this.#beginWatching();
    this.house = new House({ clock, dice: Dice.of(seed, "house"), records, onOpen });
    this.#checkWrites();
    records.onVm = (change) => {
      if (change.after !== undefined) {
        this.laws.hear(change.after);
        orphanLaws.hear(change.after);
      }
      if (!orphanLaws.isStripped(change)) this.guard(() => objectLaws.atVmChange(change));
    };
    records.onClaim = (change) => {
      if (change.after !== undefined) this.#noteLetGo(change.after.spec);
      if (!orphanLaws.isLost(change)) this.guard(() => objectLaws.atClaimChange(change));
    };
    records.onOrphan = (change) => this.guard(() => orphanLaws.atOrphanChange(change));
    const transport = inProcess((request) => this.house.handle(request));
    this.client = createClient({ transport, clock });
  }

  /** The laws of everything that is written, whatever it is. */
  #checkWrites(): void {
    const { records } = this;
    const order = new OrderLaws();
    records.onStore = (store) => this.guard(() => order.atStore(store));
    records.onObject = (object) => this.guard(() => demandWhy(object));
    records.onChange = (change) => {
      this.guard(() => order.atChange(change));
      this.orphanLaws.atChange(change);
      const { bucket, entry } = change;
      if (bucket === "core/secrets") return;
      this.guard(() => demandNoSecret(() => `${bucket} ${entry.id}`, entry.value));
    };
  }

  /** Who watches begins anew when the API does. */
  #beginWatching(): void {
    for (const watcher of Object.values(this.watchers)) this.#begin(watcher);
  }

  #begin(watcher: Watcher): void {
    watcher.begin().catch((error: unknown) => {
      // It died again meanwhile, and will be started again.
      if (this.house.isOpen) this.broken ??= error;
    });
  }

  #watcherOf(plural: string): Watcher {
    const watcher: Watcher = new Watcher({
      url: `/apis/berth.dev/v1alpha1/${plural}`,
      ask: (request) => this.house.handle(request),
      guard: (check) => this.guard(check),
      onEnd: () => this.#begin(watcher),
    });
    return watcher;
  }

  /** What is Released, or lies with a keeper, is for people. */
  #noteLetGo({ state, role, hypervisor, externalId }: ClaimSpec): void {
    if (state !== "Released" && role !== "Keeper") return;
    const site = this.sites.get(hypervisor.name);
    for (const { key, vmid } of site?.guestVolumes() ?? []) {
      if (vmid === externalId) site?.letGo.add(key);
    }
  }

  /** Keeps what is thrown where it would reach code that is under test. */
  guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.broken ??= error;
    }
  }

  /** Starts a program that is not running: the only one, or one of the two. */
  start(index: number): Program {
    const isEmbedded = this.home === "embedded";
    const weather = this.apiWeather[index] ?? {
      lagMs: 0,
      isBroken: false,
      isDoubled: false,
      isCut: false,
      loseReply: 0,
    };
    this.apiWeather[index] = weather;
    this.starts += 1;
    const program = new Program({
      name: isEmbedded ? "berth" : `berth-${index + 1}`,
      seed: this.#seed,
      start: this.starts,
      clock: this.clock,
      house: this.house,
      wires: this.wires,
      trace: this.trace,
      weather,
      isEmbedded,
      onAsk: (name) => this.guard(() => this.laws.atAsk(name)),
      metrics: this.#seed % countedEvery === 0 ? this.#newMetrics() : undefined,
      onLog: (line) => this.#hearLog(line),
      mayDestroy: () => this.kindsGoSinceMs === undefined,
    });
    this.programs[index] = program;
    // A start that fails is the end of the process, and somebody starts it again.
    program.start().catch((error: unknown) => {
      this.trace.say(program.name, () => `cannot start: ${String(error)}`);
      program.life.die();
    });
    return program;
  }

  #hearLog(line: string): void {
    this.guard(() => demandNoSecret(() => `a log: ${line}`, line));
    this.guard(() => demandSound(line));
  }

  /** Each process counts for itself. */
  #newMetrics(): Metrics {
    const metrics = createMetrics();
    this.metrics.push(metrics);
    return metrics;
  }

  /** Installs Berth: the first objects, two Hypervisors and their images. */
  async install(): Promise<void> {
    await this.house.open(this.clock);
    await declareGround(this);
    // In the embedded home the API starts anew with its program.
    if (this.home === "embedded") this.house.crash();
  }

  #wireTo(site: Site, weather: Weather): Wire {
    return new Wire({
      site,
      weather,
      trace: this.trace,
      dice: Dice.of(this.#seed, `wire ${site.name}`),
      onCall: (to) => this.guard(() => this.laws.atCall(to)),
      onEffect: (to, request, sender) => {
        const kindsGoMs = this.clock.monotonicMs() - (this.kindsGoSinceMs ?? Infinity);
        this.guard(() => this.laws.beforeEffect(to, request, { sender, kindsGoMs }));
      },
    });
  }
}

/** The objects that an installation starts with, and a Hypervisor and an image for each cluster. */
async function declareGround({ client, sites, cleanUp }: World): Promise<void> {
  for (const name of namespaces) {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    await client.of(namespaceResource).create(namespace);
  }
  const data = { id: "11111111-1111-4111-8111-111111111111" };
  const metadata = { namespace: "berth-system", name: "installation" };
  await client
    .of(configMapResource)
    .create({ apiVersion: "v1", kind: "ConfigMap", metadata, data });
  await client.of(secretResource).create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "user-data" },
    data: { userData: base64(`#cloud-config\npassword: ${canary}\n`) },
  });
  for (const site of sites.values()) await declareSite(client, site, cleanUp);
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/** What proves Berth to a cluster, as a Secret has it. */
export function credentialsOf({ tokenId, tokenSecret }: Site): Record<string, string> {
  return { tokenId: base64(tokenId), tokenSecret: base64(tokenSecret) };
}

async function declareSite(
  client: Client,
  site: Site,
  cleanUp: CleanUp | undefined,
): Promise<void> {
  const { name } = site;
  const secretRef = { namespace: "berth-system", name };
  const data = credentialsOf(site);
  const secret = { apiVersion: "v1", kind: "Secret", metadata: secretRef, data };
  await client.of(secretResource).create(secret);
  await client.of(hypervisorKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      endpoints: [`https://${name}.example:8006`],
      credentials: { secretRef },
      // So few that an id which rests is likely to be met again.
      idRange: { first: 100, last: 123 },
      defaults: { storage: "local-zfs", imageStorage: "local" },
      limits: { pollSeconds: 15 },
      // As few as can be: with so few machines more would never be reached.
      slots: { hypervisor: 3, node: 2, storage: 1 },
      ...(cleanUp === undefined ? {} : { orphans: { policy: "DeleteOwned", ...cleanUp } }),
    },
  });
  const volume = { hypervisorRef: { name }, id: "local:import/debian-12-generic-amd64.qcow2" };
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: `debian-${name}` },
    spec: { source: { volume } },
  });
}
