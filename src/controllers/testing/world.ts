import { setImmediate } from "node:timers/promises";
import { builtinResources } from "../../api/builtin/index.ts";
import {
  berthResources,
  claimKind,
  hypervisorKind,
  virtualMachineKind,
  vmImageKind,
} from "../../api/index.ts";
import type { Claim, VirtualMachine, WrittenVirtualMachineSpec } from "../../api/index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createDiscovery,
  createOpenApi,
  createResourceHandler,
  createRoleAuthorizer,
  createSchemaRunners,
  type ApiServer,
} from "../../apiserver/index.ts";
import { createClient, inProcess, type Client, type Transport } from "../../client/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { Random } from "../../kernel/random.ts";
import { ApiError } from "../../kernel/status.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { WireRequest } from "../../kernel/wire.ts";
import { never } from "../../kernel/never.ts";
import { createMemoryDisk, openStore, type MemoryDisk } from "../../store/index.ts";
import { startControllers, type ControllersOptions, type RunningControllers } from "../index.ts";
import { ModelHypervisor } from "./model.ts";

/** A whole Berth for tests: the real API on a disk of memory, a model hypervisor, one clock. */
export interface World {
  readonly clock: VirtualClock;
  readonly client: Client;
  /** The way to the API that the client takes, for whoever has another one. */
  readonly transport: Transport;
  readonly model: ModelHypervisor;
  readonly log: string[];
  /** Every write to a status, as "PUT path". */
  readonly statusWrites: string[];
  start(options?: Partial<ControllersOptions>): Incarnation;
  /** A backup of it, restored beside it: the same objects, clock and hypervisor. */
  copy(): Promise<World>;
}

/** One run of the program. A crash abandons it: its calls never settle again. */
export interface Incarnation {
  stop(): Promise<void>;
  /** Calls to the API and the hypervisor so far, as text. */
  readonly calls: string[];
  crash(): void;
  /** Crashes at that call: before it is made, or after it was made and before its answer. */
  crashAt?: { readonly call: number; readonly when: "before" | "after" };
  isCrashed: boolean;
}

const uuidOf = (count: number): string => {
  return `00000000-0000-4000-8000-${String(count).padStart(12, "0")}`;
};

export function countingRandom(seed = 1): Random {
  let state = seed;
  let uuids = seed * 1_000_000;
  const number = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const bytes = (count: number): Uint8Array => {
    return Uint8Array.from({ length: count }, () => Math.floor(number() * 256));
  };
  return { number, bytes, uuid: () => uuidOf(++uuids) };
}

const runners = createSchemaRunners();

/** Without a driver of its own it has the model's. */
export async function openWorld(
  makeDriver?: (clock: VirtualClock) => () => HypervisorDriver,
): Promise<World> {
  const clock = new VirtualClock();
  const model = new ModelHypervisor(clock);
  const driver = makeDriver?.(clock) ?? ((): HypervisorDriver => model.driver());
  const world = await openOn(createMemoryDisk(), { clock, model, driver, copies: 0 });
  await createObjects(world.client);
  return world;
}

interface Site extends Pick<World, "clock" | "model"> {
  readonly driver: () => HypervisorDriver;
  /** How many backups were restored before this one. */
  readonly copies: number;
}

async function openOn(disk: MemoryDisk, site: Site): Promise<World> {
  const { clock, model, driver, copies } = site;
  const server = await openServer(clock, disk);
  const transport = inProcess((request) => server.handleAs(controllersUser, request));
  const client = createClient({ transport, clock });
  const log: string[] = [];
  const statusWrites: string[] = [];
  let incarnations = 1 + copies * 1_000;
  return {
    clock,
    client,
    transport,
    model,
    log,
    statusWrites,
    start: (options = {}) => {
      incarnations += 1;
      return startIncarnation({
        server,
        clock,
        log,
        statusWrites,
        driver,
        random: countingRandom(incarnations),
        options,
      });
    },
    copy: () => openOn(disk.copy(), { ...site, copies: copies + 1 }),
  };
}

interface Ground {
  readonly server: ApiServer;
  readonly clock: VirtualClock;
  readonly log: string[];
  readonly statusWrites: string[];
  readonly random: Random;
  readonly driver: () => HypervisorDriver;
  readonly options: Partial<ControllersOptions>;
}

function startIncarnation(ground: Ground): Incarnation {
  const { server, clock, random } = ground;
  const calls: string[] = [];
  const call = async <T>(name: string, make: () => Promise<T>): Promise<T> => {
    if (incarnation.isCrashed) return never();
    calls.push(name);
    const dies = incarnation.crashAt?.call === calls.length;
    if (dies && incarnation.crashAt?.when === "before") incarnation.isCrashed = true;
    if (incarnation.isCrashed) return never();
    const made = make();
    if (dies) incarnation.isCrashed = true;
    const result = await made;
    return incarnation.isCrashed ? never() : result;
  };
  const transport = inProcess((request: WireRequest) => {
    const path = request.url.replace(/\?.*/, "");
    if (request.method === "PUT" && path.endsWith("/status")) ground.statusWrites.push(path);
    const isWatch = request.url.includes("watch=true");
    // Leases are renewed by the clock, and on Events nothing rests: neither is a place to die.
    const isAside = path.includes("/leases") || path.includes("/events");
    const make = (): ReturnType<ApiServer["handleAs"]> => server.handleAs(controllersUser, request);
    if (isWatch || isAside) return incarnation.isCrashed ? never() : make();
    return call(`${request.method} ${path}`, make);
  });
  const start = (): RunningControllers => {
    return startControllers({
      client: createClient({ transport, clock }),
      clock: mortalClock(clock, () => incarnation.isCrashed),
      random,
      connect: () => countedDriver(ground.driver(), call),
      log: (level, message, fields) => {
        ground.log.push(`${level} ${message} ${JSON.stringify(fields)}`);
      },
      graceMs: 1000,
      ...ground.options,
    });
  };
  const incarnation: Incarnation = {
    calls,
    isCrashed: false,
    crash: () => {
      incarnation.isCrashed = true;
    },
    stop: () => controllers.stop(),
  };
  const controllers = start();
  return incarnation;
}

/** A clock whose callbacks die with whoever set them. */
function mortalClock(clock: VirtualClock, isDead: () => boolean): ControllersOptions["clock"] {
  return {
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
    bootId: clock.bootId,
    after: (ms, then) => clock.after(ms, () => (isDead() ? undefined : then())),
  };
}

function countedDriver(
  driver: HypervisorDriver,
  call: <T>(name: string, make: () => Promise<T>) => Promise<T>,
): HypervisorDriver {
  return {
    ...driver,
    system: () => call("system", () => driver.system()),
    inventory: () => call("inventory", () => driver.inventory()),
    observe: (claim, hints) => call("observe", () => driver.observe(claim, hints)),
    propose: (avoid, first) => call("propose", () => driver.propose(avoid, first)),
    preflight: (draft) => call("preflight", () => driver.preflight(draft)),
    begin: (operation, fence) =>
      call(`begin ${operation.kind}`, () => driver.begin(operation, fence)),
    look: (task) => call("look", () => driver.look(task)),
    recall: (claim, sinceMs, hints) => call("recall", () => driver.recall(claim, sinceMs, hints)),
    guest: (claim) => call("guest", () => driver.guest(claim)),
    discs: (place) => call("discs", () => driver.discs(place)),
    leftovers: (claim) => call("leftovers", () => driver.leftovers(claim)),
    survey: (known, suspects) => call("survey", () => driver.survey(known, suspects)),
    images: (place) => call("images", () => driver.images(place)),
    epoch: (installation) => call("epoch", () => driver.epoch(installation)),
    advance: (change, fence) => call("advance", () => driver.advance(change, fence)),
  };
}

async function openServer(clock: VirtualClock, disk: MemoryDisk): Promise<ApiServer> {
  const store = await openStore({ journal: disk.open(), clock });
  const catalogue = createCatalogue([...builtinResources, ...berthResources]);
  const random = countingRandom(0);
  const environment = { store, catalogue, clock, random, runnerOf: runners };
  return createApiServer({
    catalogue,
    resources: createResourceHandler(environment),
    discovery: createDiscovery(catalogue),
    openApi: createOpenApi(catalogue),
    authenticators: [],
    authorizer: createRoleAuthorizer(),
    health: () => [],
    version: "0.0.0",
    clock,
    random,
    log: () => undefined,
  });
}

async function createObjects(client: Client): Promise<void> {
  const kinds = builtinResources;
  const of = (kind: string): Client["of"] extends never ? never : ReturnType<Client["of"]> => {
    const resource = kinds.find((candidate) => candidate.kind === kind);
    if (resource === undefined) throw new Error(`no ${kind}`);
    return client.of(resource);
  };
  for (const name of ["default", "berth-system"]) {
    await of("Namespace").create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  await of("ConfigMap").create({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "berth-system", name: "installation" },
    data: { id: uuidOf(7) },
  });
  await of("Secret").create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "berth-system", name: "model" },
    data: { tokenId: Buffer.from("t").toString("base64") },
  });
  await createHypervisor(client, "model");
  await createImage(client, "debian");
}

export async function createHypervisor(client: Client, name: string): Promise<void> {
  const secretRef = { namespace: "berth-system", name: "model" };
  await client.of(hypervisorKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      endpoints: ["https://model.example:8006"],
      credentials: { secretRef },
    },
  });
}

export async function createImage(client: Client, name: string): Promise<void> {
  const volume = { hypervisorRef: { name: "model" }, id: "store:import/debian.qcow2" };
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name },
    spec: { source: { volume } },
  });
}

/** A small VM from an image, with a root disk that grows and an empty one. */
const smallVm: WrittenVirtualMachineSpec = {
  hypervisorRef: { name: "model" },
  cpu: { cores: 2 },
  memory: { size: "2Gi" },
  source: { image: { name: "debian" } },
  disks: [
    { name: "root", size: "10Gi" },
    { name: "data", size: "20Gi" },
  ],
  networks: [{ name: "lan", bridge: "vmbr0" }],
};

export async function createVm(
  client: Client,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec> = {},
): Promise<void> {
  await client.of(virtualMachineKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { namespace: "default", name },
    spec: { ...smallVm, ...spec },
  });
}

export async function getVm(client: Client, name: string): Promise<VirtualMachine | undefined> {
  try {
    return await client.of(virtualMachineKind).get({ namespace: "default", name });
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

export async function listClaims(client: Client): Promise<Claim[]> {
  return (await client.of(claimKind).list()).items;
}

export function condition(vm: VirtualMachine | undefined, type: string): string {
  const found = vm?.status?.conditions?.find((one) => one.type === type);
  return found === undefined ? "" : `${found.status} ${found.reason}`;
}

export function isReady(vm: VirtualMachine | undefined): boolean {
  const isCurrent = vm?.status?.observedGeneration === vm?.metadata.generation;
  return isCurrent && condition(vm, "Ready").startsWith("True");
}

/** Lets everything happen that can happen without time passing. */
async function flush(): Promise<void> {
  for (let i = 0; i < 4; i++) await setImmediate();
}

/** Lets time pass until something holds; false if it never does. */
export async function until(
  { clock }: World,
  holds: () => Promise<boolean> | boolean,
  withinMs = 600_000,
): Promise<boolean> {
  const endMs = clock.monotonicMs() + withinMs;
  for (;;) {
    await flush();
    if (await holds()) return true;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    clock.advance(Math.min(leftMs, clock.nextInMs() ?? leftMs));
  }
}
