import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { builtinResources } from "../../src/api/builtin/index.ts";
import { berthResources } from "../../src/api/index.ts";
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
} from "../../src/apiserver/index.ts";
import { createClient, inProcess, type Client } from "../../src/client/index.ts";
import { startControllers } from "../../src/controllers/index.ts";
import { countingRandom } from "../../src/controllers/testing/world.ts";
import { proxmoxDriver, type PveRequest, type Send } from "../../src/drivers/proxmox/index.ts";
import { answered } from "../../src/hypervisor/index.ts";
import { VirtualClock } from "../../src/kernel/virtual-clock.ts";
import { never } from "../../src/kernel/never.ts";
import { ProxmoxModel, smallCluster, tokenName, tokenUser } from "../../src/sim/index.ts";
import { sendTo } from "../../src/sim/wire/index.ts";
import {
  createMemoryDisk,
  openSqliteJournal,
  openStore,
  type JournalRecord,
} from "../../src/store/index.ts";

// Everything here is in the sources of 0.1 too: the script that made the kept folder runs there.

const tokenSecret = "00000000-0000-4000-8000-0000000000aa";
const tokenId = `${tokenUser}!${tokenName}`;

/** What is left of an installation and of its cluster when the power fails. */
export interface Kept {
  readonly nowMs: number;
  readonly records: readonly JournalRecord[];
  /** The cluster, as `ProxmoxModel.save` writes it. */
  readonly cluster: string;
}

/** A Berth with its own API, a simulated Proxmox cluster and a virtual clock. */
export interface Stage {
  readonly clock: VirtualClock;
  readonly client: Client;
  readonly model: ProxmoxModel;
  /** Everything that Berth sent to the cluster and that was no read, as "METHOD path". */
  readonly writes: string[];
  readonly log: string[];
  /** Done before each request to the cluster. */
  before: () => Promise<void>;
  /** Whether the reply to a request never comes. */
  holds: (request: PveRequest) => boolean;
  start(): void;
  /** The power fails everywhere. */
  crash(): Promise<Kept>;
}

const resources = [...builtinResources, ...berthResources];

export async function openStage(kept?: Kept, kinds: typeof resources = resources): Promise<Stage> {
  const clock = kept === undefined ? new VirtualClock() : new VirtualClock(kept.nowMs);
  const disk = createMemoryDisk();
  await disk.open().append(kept?.records ?? []);
  const server = await openServer(clock, disk.open(), kinds);
  const client = createClient({ transport: asController(server), clock });
  const model = openModel(clock, kept?.cluster);
  const writes: string[] = [];
  const log: string[] = [];
  let isDead = false;
  const send: Send = async (request) => {
    if (isDead) return never();
    await stage.before();
    // The epoch of a run is an empty pool, and touches no VM: 0.1 wrote none.
    const isEpoch = request.path.startsWith("/pools");
    if (request.method !== "GET" && !isEpoch) writes.push(`${request.method} ${request.path}`);
    const reply = await sendTo(model, { id: tokenId, secret: tokenSecret })(request);
    return isDead || stage.holds(request) ? never() : reply;
  };
  const stage: Stage = {
    clock,
    client,
    model,
    writes,
    log,
    before: () => Promise.resolve(),
    holds: () => false,
    start: () => {
      const random = countingRandom(kept === undefined ? 3 : 4);
      startControllers({
        client,
        clock,
        random,
        connect: () => proxmoxDriver({ send, tokenId, clock, random }),
        web: { resolve: async () => answered(["203.0.113.7"]), open: () => never() },
        log: (level, message, fields) => {
          log.push(`${level} ${message} ${JSON.stringify(fields)}`);
        },
        graceMs: 1000,
      });
    },
    crash: async () => {
      isDead = true;
      const { records } = await disk.open().load();
      return { nowMs: clock.nowMs(), records: current(records), cluster: model.save() };
    },
  };
  return stage;
}

function openModel(clock: VirtualClock, saved: string | undefined): ProxmoxModel {
  const random = countingRandom(99);
  const nodes = ["pve1", "pve2", "pve3"];
  const options = {
    release: "8.4",
    nodes,
    clock,
    random,
    password: "secret",
    tokenSecret,
  } as const;
  // A file of 8 GiB takes a while to arrive.
  const file = { kind: "file", sizeBytes: 8 * 2 ** 30, sha256: "0".repeat(64) } as const;
  const fetched = { ...file, mimeType: "application/octet-stream", virtualBytes: 2 ** 31 };
  const fetch = (): Promise<typeof fetched> => Promise.resolve(fetched);
  if (saved !== undefined) return ProxmoxModel.load(saved, { clock, random, fetch });
  return new ProxmoxModel({ state: smallCluster(options), clock, random, fetch });
}

async function openServer(
  clock: VirtualClock,
  journal: Parameters<typeof openStore>[0]["journal"],
  kinds: typeof resources,
): Promise<ApiServer> {
  const store = await openStore({ journal, clock });
  const catalogue = createCatalogue(kinds);
  const random = countingRandom(5);
  const runnerOf = createSchemaRunners();
  return createApiServer({
    catalogue,
    resources: createResourceHandler({ store, catalogue, clock, random, runnerOf }),
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

function asController(server: ApiServer): ReturnType<typeof inProcess> {
  return inProcess((request) => server.handleAs(controllersUser, request));
}

/** The newest record of each object that is there. */
function current(records: Iterable<JournalRecord>): JournalRecord[] {
  const newest = new Map<string, JournalRecord>();
  for (const record of records) newest.set(`${record.bucket}\n${record.id}`, record);
  const there = [...newest.values()].filter(({ type }) => type === "put");
  return there.toSorted((a, b) => a.revision - b.revision);
}

/** Lets time pass until something holds; false if it does not within that time. */
export async function pass(
  { clock }: Pick<Stage, "clock">,
  withinMs: number,
  holds: () => Promise<boolean> | boolean = () => false,
): Promise<boolean> {
  const endMs = clock.monotonicMs() + withinMs;
  for (;;) {
    for (let turn = 0; turn < 4; turn += 1) await setImmediate();
    if (await holds()) return true;
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs <= 0) return false;
    clock.advance(Math.min(leftMs, clock.nextInMs() ?? leftMs));
  }
}

/** Writes records as the store of a data folder. */
export async function writeDatabase(
  path: string,
  records: readonly JournalRecord[],
): Promise<void> {
  rmSync(path, { force: true });
  const journal = await openSqliteJournal({ path });
  await journal.load();
  await journal.append(records);
  await journal.close();
}

export async function readDatabase(path: string): Promise<JournalRecord[]> {
  const journal = await openSqliteJournal({ path });
  const { records } = await journal.load();
  const all = [...records];
  await journal.close();
  assert.ok(all.length > 0, `${path} is empty`);
  return all;
}
