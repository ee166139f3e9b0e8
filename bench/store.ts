/**
 * What the store alone gives, without the wire: durable writes, lists, opening.
 *
 * The folder for its data is the first argument; by default it is where temporary files are.
 * Usage: npm run bench -- store [FOLDER]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteJournal, openStore, type Store } from "../src/store/index.ts";

const objectCount = 10_000;
const serialCount = 500;
const value = new TextEncoder().encode(JSON.stringify({ spec: "x".repeat(2_000) }));

const clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  bootId: "bench",
  after: () => () => {},
};

const folder = mkdtempSync(join(process.argv[2] ?? tmpdir(), "berth-bench-"));
try {
  await run(join(folder, "store.db"));
} finally {
  rmSync(folder, { recursive: true });
}

async function run(path: string): Promise<void> {
  const store = await open(path);
  await measureWrites(store, "serial writes", { writers: 1, count: serialCount });
  const count = objectCount - serialCount;
  await measureWrites(store, "writes by 64", { writers: 64, count });
  await measure("list of all", async () => void store.list({ bucket: "vms" }));
  await measure("list of all, again", async () => void store.list({ bucket: "vms" }));
  await measure("list of all as it was before the last 1,000 writes", async () => {
    store.list({ bucket: "vms", atRevision: objectCount - 1_000 });
  });
  await measure("close", () => store.close());
  const reopened = await measure(`open with ${objectCount} objects`, () => open(path));
  await reopened.close();
}

async function open(path: string): Promise<Store> {
  return openStore({ journal: await openSqliteJournal({ path }), clock });
}

async function measureWrites(
  store: Store,
  name: string,
  { writers, count }: { writers: number; count: number },
): Promise<void> {
  const latencies: number[] = [];
  let begun = 0;
  const write = async (): Promise<void> => {
    while (begun < count) {
      const key = { bucket: "vms", id: `${name}/${begun++}` };
      const sinceMs = performance.now();
      await store.write(key, () => ({ do: "put", encode: () => value.slice() }));
      latencies.push(performance.now() - sinceMs);
    }
  };
  const sinceMs = performance.now();
  await Promise.all(Array.from({ length: writers }, write));
  const perSecond = (count * 1_000) / (performance.now() - sinceMs);
  latencies.sort((left, right) => left - right);
  const at = (part: number): string => (latencies[Math.floor(count * part)] ?? 0).toFixed(2);
  console.log(`${name}: ${perSecond.toFixed(0)}/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

async function measure<T>(name: string, task: () => Promise<T>): Promise<T> {
  const sinceMs = performance.now();
  const result = await task();
  console.log(`${name}: ${(performance.now() - sinceMs).toFixed(1)} ms`);
  return result;
}
