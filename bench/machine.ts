/**
 * From the apply of a VirtualMachine to its start: Berth's own share, one by one and 20 at once.
 *
 * A real `berth up` and a real `berth sim proxmox`, both processes of their own, with HTTPS between
 * them. A door stands in between, which writes down every request. A machine's time runs from just
 * before its object is sent to the API until the request that starts it arrives at the door.
 *
 * Taken off is what is the hypervisor's: the union of the times in which a request about this
 * machine was open at the door (from its head to the last byte of its reply) or a task of this
 * machine ran (by the simulator's own record, to the millisecond). All else is Berth's: its API and
 * store, queues, the wire between it and the door, and above all what passes between the end of a
 * task and the moment at which Berth notices.
 *
 * One by one, every request is the machine's except the hypervisor's tick and looks at others. At
 * once, only a request that names its id: the others, and waiting for a turn at a node, which
 * takes only so many calls at a time, count as Berth's.
 * A storage takes one copy at a time. The time in line, from the first copy of another machine that
 * is waited for to the end of the last, is nobody's share; what passes there between the end of one
 * copy and the start of the next is Berth's again, and shown by itself as the hand-over.
 *
 * On a busy machine all of this grows with what the others do: the load is printed beside it, and
 * the processor time that Berth itself used per machine.
 *
 * With --trace the machine with the largest share of Berth's is told gap by gap.
 * Usage: npm run bench -- machine [--machines 200] [--together 20] [--trace]
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startBerth, temporaryFolder } from "../test/real/support/berth.ts";
import { connect, follow, type Http } from "../test/real/support/http.ts";
import {
  create,
  declareHypervisor,
  declareImage,
  machineOf,
  machines,
} from "../test/real/support/lab.ts";
import {
  type Exchange,
  type RecordingProxy,
  startRecordingProxy,
} from "../test/real/support/recording-proxy.ts";
import { type SimulatorProcess, startSimulatorProcess } from "../test/real/support/simulator.ts";
import { coveredMs, type Interval } from "./intervals.ts";
import { show, spreadOf, usedCpuMs } from "./support.ts";

const { values } = parseArgs({
  options: {
    machines: { type: "string", default: "200" },
    together: { type: "string", default: "20" },
    trace: { type: "boolean", default: false },
  },
});
const phases = [
  [oneByOne, Number(values.machines)],
  [atOnce, Number(values.together)],
] as const;
/** What the first machines of a fresh process cost says little about the others. */
const warmUp = 3;

interface Story {
  readonly name: string;
  readonly appliedMs: number;
  externalId: string;
  writes: number;
  readonly ready: PromiseWithResolvers<void>;
}

interface Task {
  readonly type: string;
  readonly id: string;
  readonly startMs: number;
  readonly endMs: number;
}

await main();

async function main(): Promise<void> {
  const folder = temporaryFolder("bench");
  const simulator = await startSimulatorProcess();
  const door = await startRecordingProxy(simulator);
  const berth = await startBerth({ data: folder.path });
  const http = connect(berth);
  const stories = new Map<string, Story>();
  const watch = follow(berth, `${machines}?watch=true`, (event) => note(stories, event.object));
  try {
    await watch.opened;
    await declareHypervisor(http, "lab", { ...simulator, ...placeOf(door) });
    await declareImage(http, "debian-12", "lab");
    const bench = { http, stories, simulator, door };
    for (let index = 0; index < warmUp; index++) await make(bench, `warm-${index}`);
    for (const [phase, count] of phases) {
      const cpuMs = usedCpuMs(berth.pid);
      await phase(bench, count);
      const perMachine = (usedCpuMs(berth.pid) - cpuMs) / count;
      show("", { "CPU ms of Berth per machine": perMachine, "load average": loadavg()[0] ?? 0 });
    }
  } finally {
    watch.stop();
    http.close();
    await berth.stop();
    await door.close();
    await simulator.stop();
    folder.remove();
  }
}

function placeOf({ url, fingerprint }: RecordingProxy): { url: string; fingerprint: string } {
  return { url, fingerprint };
}

interface Bench {
  readonly http: Http;
  readonly stories: Map<string, Story>;
  readonly simulator: SimulatorProcess;
  readonly door: RecordingProxy;
}

/** What the API tells of a machine: how often it was written, its id, and that it is Ready. */
function note(stories: Map<string, Story>, object: Watched): void {
  const story = stories.get(object.metadata.name);
  if (story === undefined) return;
  story.writes += 1;
  story.externalId = object.status?.externalId ?? story.externalId;
  const ready = object.status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status === "True") story.ready.resolve();
}

interface Watched {
  readonly metadata: { readonly name: string };
  readonly status?: {
    readonly externalId?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

async function make({ http, stories }: Bench, name: string): Promise<Story> {
  const ready = Promise.withResolvers<void>();
  const story = { name, appliedMs: Date.now(), externalId: "", writes: 0, ready };
  stories.set(name, story);
  await create(http, machines, machineOf(name));
  await ready.promise;
  return story;
}

async function oneByOne(bench: Bench, count: number): Promise<void> {
  const { exchanges } = bench.door;
  const made: { readonly story: Story; readonly own: readonly Exchange[] }[] = [];
  for (let index = 0; index < count; index++) {
    const from = exchanges.length;
    const story = await make(bench, `single-${index}`);
    const own = exchanges.slice(from).filter((exchange) => {
      return !isTick(exchange) && !isAboutOther(exchange, story.externalId);
    });
    made.push({ story, own });
  }
  const tasks = await tasksOf(bench.simulator);
  report(
    "one by one",
    made.map(({ story, own }) => figureOf(story, { own, tasks })),
  );
}

async function atOnce(bench: Bench, count: number): Promise<void> {
  const from = bench.door.exchanges.length;
  const sinceMs = Date.now();
  const names = Array.from({ length: count }, (_, index) => `together-${index}`);
  const made = await Promise.all(names.map((name) => make(bench, name)));
  const tasks = await tasksOf(bench.simulator);
  const exchanges = bench.door.exchanges.slice(from);
  report(
    `${count} at once`,
    made.map((story) => {
      const own = exchanges.filter((exchange) => isAbout(exchange, story.externalId));
      return figureOf(story, { own, tasks });
    }),
  );
  showSpread(`${count} at once: hand-over of the storage`, handOvers(tasks, sinceMs));
}

async function tasksOf(simulator: SimulatorProcess): Promise<Task[]> {
  return (await simulator.hook("tasks")).tasks;
}

/** The look at the whole cluster that every hypervisor gets once per tick. */
function isTick({ path }: Exchange): boolean {
  return path === "/api2/json/cluster/resources";
}

function isAbout({ path, body }: Exchange, id: string): boolean {
  return new RegExp(`(/qemu/|vmid=|%3A)${id}(/|&|%3A|$)`).test(`${path}&${body}`);
}

/** A machine that was made before and is looked at once more. */
function isAboutOther({ path }: Exchange, id: string): boolean {
  const named = /\/qemu\/(\d+)\//.exec(path)?.[1];
  return named !== undefined && named !== id;
}

interface Figure {
  readonly timeline: readonly string[];
  readonly wallMs: number;
  readonly ownMs: number;
  readonly looks: number;
  readonly reads: number;
  readonly writes: number;
  readonly statusWrites: number;
}

function figureOf(
  story: Story,
  { own, tasks }: { readonly own: readonly Exchange[]; readonly tasks: readonly Task[] },
): Figure {
  const start = own.find(({ method, path }) => method === "POST" && path.endsWith("/status/start"));
  const copy = own.find(({ body }) => body.includes("import-from"));
  if (start === undefined || copy === undefined) throw new Error(`${story.name} was not started`);
  const stretch = { beginMs: story.appliedMs, endMs: start.beginMs };
  const line = lineBefore(copy.beginMs, story, tasks);
  const running = tasks.filter(({ id }) => id === story.externalId).map(intervalOf);
  const theirs = [...own, ...running, ...line];
  const theirsMs = coveredMs(stretch, theirs);
  const wallMs = stretch.endMs - stretch.beginMs;
  const reads = own.filter(({ method }) => method === "GET");
  const looks = reads.filter(({ path }) => path.includes("/tasks/UPID"));
  return {
    timeline: values.trace ? timelineOf(stretch, theirs) : [],
    wallMs,
    ownMs: wallMs - theirsMs,
    looks: looks.length,
    reads: reads.length - looks.length,
    writes: own.length - reads.length,
    statusWrites: story.writes,
  };
}

/** Every gap in which nothing of the hypervisor's went on, and what came after it. */
function timelineOf(stretch: Interval, theirs: readonly (Interval | Exchange)[]): string[] {
  const lines: string[] = [];
  let untilMs = stretch.beginMs;
  for (const next of theirs.toSorted((left, right) => left.beginMs - right.beginMs)) {
    if (next.beginMs > stretch.endMs) break;
    const gapMs = Math.max(0, next.beginMs - untilMs);
    untilMs = Math.max(untilMs, next.endMs);
    const atMs = next.beginMs - stretch.beginMs;
    const what = "path" in next ? `${next.method} ${next.path}` : "a task";
    lines.push(`${String(atMs).padStart(7)}  gap ${String(gapMs).padStart(5)}  ${what}`);
  }
  return lines;
}

/** The time in line: other machines' copies, once this machine stood, until its own. */
function lineBefore(atMs: number, { externalId }: Story, tasks: readonly Task[]): Interval[] {
  const made = tasks.find(({ id, type }) => id === externalId && type === "qmcreate");
  const others = tasks.filter(({ type, endMs, startMs }) => {
    return type === "qmconfig" && startMs < atMs && endMs > (made?.endMs ?? atMs);
  });
  if (others.length === 0) return [];
  const beginMs = Math.max(made?.endMs ?? 0, Math.min(...others.map(({ startMs }) => startMs)));
  return [{ beginMs, endMs: Math.min(atMs, Math.max(...others.map(({ endMs }) => endMs))) }];
}

/** From the end of each copy to the start of the next. */
function handOvers(tasks: readonly Task[], sinceMs: number): number[] {
  const copies = tasks.filter(({ type, startMs }) => type === "qmconfig" && startMs >= sinceMs);
  const sorted = copies.toSorted((left, right) => left.startMs - right.startMs);
  return sorted.slice(1).map(({ startMs }, index) => startMs - (sorted[index]?.endMs ?? startMs));
}

function intervalOf({ startMs, endMs }: Task): Interval {
  return { beginMs: startMs, endMs };
}

function report(name: string, figures: readonly Figure[]): void {
  showSpread(
    `${name}: own share`,
    figures.map(({ ownMs }) => ownMs),
  );
  showSpread(
    `${name}: all`,
    figures.map(({ wallMs }) => wallMs),
  );
  const mean = (of: (figure: Figure) => number): number => {
    return figures.reduce((sum, figure) => sum + of(figure), 0) / figures.length;
  };
  show(`${name}: per machine`, {
    reads: mean(({ reads }) => reads),
    "looks at tasks": mean(({ looks }) => looks),
    writes: mean(({ writes }) => writes),
    "versions of the object": mean(({ statusWrites }) => statusWrites),
  });
  trace(figures);
}

function trace(figures: readonly Figure[]): void {
  const [worst] = figures.toSorted((left, right) => right.ownMs - left.ownMs);
  for (const line of worst?.timeline ?? []) process.stdout.write(`  ${line}\n`);
}

function showSpread(name: string, samplesMs: readonly number[]): void {
  const { p50, p90, p99, max } = spreadOf(samplesMs);
  const spread = { "p50 ms": p50, "p90 ms": p90, "p99 ms": p99, "max ms": max };
  show(name, { n: String(samplesMs.length), ...spread });
}
