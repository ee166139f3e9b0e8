/**
 * What is lost between the end of a task and the look that notices it, on a virtual clock.
 *
 * Machines are made one by one. Nobody's processor counts here, so the figures are the same every
 * time: of the time from apply to the request that starts a machine, all that is neither an open
 * request nor a running task of the cluster is waiting for the next look. The process is fresh: the
 * first machines are among them.
 * Usage: npm run bench -- pace [MACHINES]
 */
import assert from "node:assert/strict";
import { openProxmox, type SimulatedWorld } from "../src/controllers/testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "../src/controllers/testing/world.ts";
import { coveredMs, type Interval } from "./intervals.ts";
import { show, spreadOf } from "./support.ts";
import { addWire, makeRoom } from "./thousand-figures.ts";

const count = Number(process.argv[2] ?? 200);
const stage = await openProxmox("9.2", { nodes: ["pve1"] });
makeRoom(stage.proxmox);
addWire(stage.proxmox, stage.world.clock);
const exchanges = recordedExchanges(stage);
const berth = stage.world.start();
await until(stage.world, () => false, 30_000);
const figures: Figure[] = [];
for (let index = 0; index < count; index++) figures.push(await make(`vm-${index}`));
report("the first five", figures.slice(0, 5));
report("all", figures);
berth.crash();

interface Exchange extends Interval {
  readonly method: string;
  readonly path: string;
}

interface Figure {
  readonly ownMs: number;
  readonly wallMs: number;
  /** By the kind of task. */
  readonly looks: ReadonlyMap<string, number>;
}

function recordedExchanges({ proxmox, world }: SimulatedWorld): Exchange[] {
  const recorded: Exchange[] = [];
  const send = proxmox.send.bind(proxmox);
  proxmox.send = async (request) => {
    const beginMs = world.clock.nowMs();
    const reply = await send(request);
    const { method, path } = request;
    recorded.push({ method, path, beginMs, endMs: world.clock.nowMs() });
    return reply;
  };
  return recorded;
}

async function make(name: string): Promise<Figure> {
  const { world, proxmox } = stage;
  exchanges.splice(0);
  const beginMs = world.clock.nowMs();
  await createVm(world.client, name, {
    disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
  });
  assert.ok(await until(world, async () => isReady(await getVm(world.client, name))));
  const start = exchanges.find(({ path }) => path.endsWith("/status/start"));
  const id = /\/qemu\/(\d+)\//.exec(start?.path ?? "")?.[1];
  const endMs = start?.beginMs ?? beginMs;
  const tasks = proxmox.cluster.state.nodes.flatMap((node) => node.tasks);
  const own = tasks.filter((task) => task.id === id);
  const running = own.map((task) => ({ beginMs: task.startMs, endMs: task.endMs ?? Infinity }));
  const wallMs = endMs - beginMs;
  const theirsMs = coveredMs({ beginMs, endMs }, [...exchanges, ...running]);
  return { ownMs: wallMs - theirsMs, wallMs, looks: looksOf(exchanges) };
}

function looksOf(requests: readonly Exchange[]): Map<string, number> {
  const kinds = requests.flatMap(({ path }) => /%3A(qm\w+|resize)%3A/.exec(path)?.[1] ?? []);
  return new Map([...Map.groupBy(kinds, (kind) => kind)].map(([kind, all]) => [kind, all.length]));
}

function report(name: string, made: readonly Figure[]): void {
  const own = spreadOf(made.map(({ ownMs }) => ownMs));
  const all = spreadOf(made.map(({ wallMs }) => wallMs));
  show(`${name}: waiting for a look`, {
    n: String(made.length),
    "p50 ms": own.p50,
    "p90 ms": own.p90,
    "p99 ms": own.p99,
    "max ms": own.max,
    "of p50 ms": all.p50,
  });
  for (const kind of made[0]?.looks.keys() ?? []) {
    const looks = spreadOf(made.map((figure) => figure.looks.get(kind) ?? 0));
    show(`${name}: looks at a ${kind}`, { p50: String(looks.p50), max: String(looks.max) });
  }
}
