import { configMapResource, namespaceResource, secretResource } from "../../api/builtin/index.ts";
import { hypervisorKind, vmImageKind, type VirtualMachine } from "../../api/index.ts";
import { createClient, inProcess, type Client } from "../../client/index.ts";
import type { Place } from "../../controllers/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createMetrics, type Metrics } from "../../runtime/index.ts";
import type { Release } from "../proxmox/index.ts";
import { Excuses } from "./behind.ts";
import { Dice, NamedDice } from "./dice.ts";
import { House } from "./house.ts";
import { callLimitsOf, Laws } from "./laws.ts";
import { ObjectLaws } from "./laws-objects.ts";
import { OrderLaws } from "./laws-order.ts";
import { OrphanLaws } from "./laws-orphans.ts";
import { canary, demandNoSecret } from "./laws-secrets.ts";
import { demandSound } from "./laws-sound.ts";
import { StepLaws } from "./laws-steps.ts";
import { demandWhy } from "./laws-why.ts";
import { LifeLaws } from "./laws-lives.ts";
import { noteLetGo } from "./let-go.ts";
import { isStatusLost } from "./lost-status.ts";
import { fairApiWeather, Program, type ApiWeather, type Forgetting } from "./program.ts";
import { Records, type VmChange } from "./records.ts";
import type { SecondLife } from "./second-life.ts";
import { Site } from "./site.ts";
import { Trace } from "./trace.ts";
import { Watcher } from "./watcher.ts";
import { fairWeather, subjectOf, Wire, type Weather } from "./wire.ts";

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
  /** Before how many of their turns the programs forget everything; none if nothing is said. */
  readonly amnesia?: Forgetting;
  /** How far the clocks of each cluster's nodes are ahead of Berth's. */
  readonly clocksAheadMs?: Readonly<Record<string, number>>;
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
  /** Backups that were started beside the original. */
  readonly copies: SecondLife[] = [];
  /** Where the original is; absent: nobody can tell. */
  place: Place | undefined;
  readonly lives: LifeLaws;
  readonly #excuses = new Excuses(this.records);
  readonly steps = new StepLaws({
    nowMs: () => this.clock.nowMs(),
    behind: (site, request) => this.#excuses.behind(site, request),
    starts: () => this.starts,
  });
  readonly seed: number;
  readonly amnesia: Forgetting;

  constructor(options: WorldOptions) {
    const { seed, home, releases, listen, cleanUp, amnesia = "none", clocksAheadMs } = options;
    const { clock, records, sites } = this;
    this.seed = seed;
    this.amnesia = amnesia;
    this.home = home;
    this.cleanUp = cleanUp;
    this.trace = new Trace(clock, listen);
    const nowMs = (): number => clock.nowMs();
    this.laws = new Laws(records, sites, nowMs);
    this.laws.callLimits = callLimitsOf(amnesia);
    this.laws.isShared = () => this.copies.some((copy) => copy.isBeside());
    this.laws.files.isShared = this.laws.isShared;
    const others = (): Records[] => this.copies.map((copy) => copy.records);
    this.laws.others = others;
    const recordsOf = (life: string): Records | undefined => {
      return life === "berth" ? records : this.#copyOf(life)?.records;
    };
    this.lives = new LifeLaws({ recordsOf, nowMs });
    const orphanLaws = new OrphanLaws({ records, sites, nowMs });
    this.orphanLaws = orphanLaws;
    this.laws.orphanOf = (site, request, what) => orphanLaws.intentOf(site, request, what);
    const objectLaws = new ObjectLaws({ records, sites, wires: this.wires, nowMs, others });
    for (const [name, release] of Object.entries(releases)) {
      const site = new Site({ name, release, clock, dice: Dice.of(seed, `site ${name}`) });
      site.model.cluster.setClocks(clocksAheadMs?.[name] ?? 0);
      const weather = { ...fairWeather };
      site.onGone = (id, origin) => this.#lawsFor(site, id).whenGone(site, id, origin);
      site.onVolumeGone = (volume) => {
        const id = /^[a-z]+-(\d+)-/.exec(volume)?.[1] ?? "";
        this.#lawsFor(site, id).whenVolumeGone(site, volume);
      };
      sites.set(name, site);
      this.weather.set(name, weather);
      this.wires.set(name, this.#wireTo(site, weather));
    }
    const onOpen = (): void => this.#beginWatching();
    this.house = new House({ clock, dice: new NamedDice(seed, "house"), records, onOpen });
    this.#checkWrites();
    records.onVm = (change) => {
      this.#excuses.hear(change);
      const before = this.#knownBefore(change);
      if (change.after !== undefined) {
        this.laws.hear(change.after);
        orphanLaws.hear(change.after);
      }
      if (!orphanLaws.isStripped(change)) this.#demandOfVm(objectLaws, { ...change, before });
    };
    records.onClaim = (change) => {
      const { after, before } = change;
      const site = after && this.sites.get(after.spec.hypervisor.name);
      if (after !== undefined && site !== undefined) noteLetGo(site, after.spec, before?.spec);
      if (!orphanLaws.isLost(change)) this.guard(() => objectLaws.atClaimChange(change));
    };
    this.#checkWork();
    const transport = inProcess((request) => this.house.handle(request));
    this.client = createClient({ transport, clock });
  }

  #copyOf(life: string): SecondLife | undefined {
    return this.copies.find(({ name }) => name === life);
  }

  /** By what is declared in the life that sends it. */
  #lawsOf(life: string): Laws {
    return this.#copyOf(life)?.laws ?? this.laws;
  }

  #lawsFor(site: Site, id: string): Laws {
    return this.#lawsOf(this.lives.lastSender(site, id));
  }

  /** Whose status was taken away is like new: nothing is held against what it said before. */
  #knownBefore(change: VmChange): VirtualMachine | undefined {
    const { before } = change;
    if (before === undefined || !isStatusLost(change)) return before;
    this.laws.loseStatus(before);
    this.steps.loseStatus();
    const { status: _lost, ...rest } = before;
    return rest;
  }

  #demandOfVm(objectLaws: ObjectLaws, change: VmChange): void {
    this.guard(() => objectLaws.atVmChange(change));
  }

  /** The laws of images, of their files and of what was found. */
  #checkWork(): void {
    const { records, sites } = this;
    records.onImage = (change) => {
      this.#excuses.hear(change);
      if (isStatusLost(change)) {
        this.laws.files.loseStatus();
        this.steps.loseStatus();
      }
      const { after } = change;
      if (after) this.guard(() => this.laws.files.atImage(after, sites.values()));
    };
    records.onFile = (change) => this.guard(() => this.laws.files.atClaim(change, sites));
    records.onOrphan = (change) => {
      this.#excuses.hear(change);
      if (isStatusLost(change)) this.steps.loseStatus();
      this.guard(() => this.orphanLaws.atOrphanChange(change));
    };
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
    const weather = this.apiWeather[index] ?? { ...fairApiWeather };
    this.apiWeather[index] = weather;
    this.starts += 1;
    const program = new Program({
      name: isEmbedded ? "berth" : `berth-${index + 1}`,
      seed: this.seed,
      start: this.starts,
      clock: this.clock,
      house: this.house,
      wires: this.wires,
      trace: this.trace,
      weather,
      isEmbedded,
      amnesia: this.amnesia,
      place: this.place,
      onAsk: (name) => this.guard(() => this.laws.atAsk(name)),
      metrics: this.seed % countedEvery === 0 ? this.#newMetrics() : undefined,
      onLog: (line) => this.hearLog(line),
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

  hearLog(line: string): void {
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
      dice: new NamedDice(this.seed, `wire ${site.name}`),
      onCall: (to, sender) => this.guard(() => this.#lawsOf(sender).atCall(to)),
      onDone: (to, heard) => this.lives.whenDone(to, heard),
      onTold: (to, heard) => this.guard(() => this.lives.whenTold(to, heard)),
      onEffect: (to, request, sender) => {
        const kindsGoMs = this.clock.monotonicMs() - (this.kindsGoSinceMs ?? Infinity);
        const laws = this.#lawsOf(sender);
        this.guard(() => this.lives.beforeEffect(to, request, sender));
        this.guard(() => laws.beforeEffect(to, request, { sender, kindsGoMs }));
        if (laws === this.laws) this.guard(() => this.steps.beforeEffect(to, request));
        // What another life does is done by somebody else.
        else to.touched(subjectOf(request) ?? "");
      },
      onAnswered: (request, reply) => this.steps.whenAnswered(request, reply),
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
