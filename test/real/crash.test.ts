import assert from "node:assert/strict";
import test from "node:test";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect, follow } from "./support/http.ts";
import { createLedger, type Ledger, writeUntilBroken } from "./support/writers.ts";
import "./support/cleanup.ts";

const kills = process.env["BERTH_REQUIRE_REAL"] === "1" ? 100 : 20;
const writers = 32;
const configMaps = "/api/v1/namespaces/default/configmaps";

/** What one watch saw over all incarnations of the server. */
interface Seen {
  revision: number;
  readonly objects: Map<string, number>;
  readonly revisions: Set<number>;
  expired: number;
  disorder: string[];
}

test(`kill -9, ${kills} times under ${writers} writers, loses nothing acknowledged`, async (t) => {
  const folder = temporaryFolder("crash");
  t.after(() => folder.remove());
  const ledger = createLedger();
  const seen: Seen = {
    revision: 0,
    objects: new Map(),
    revisions: new Set(),
    expired: 0,
    disorder: [],
  };
  let highest = 0;
  for (let round = 0; round < kills; round++) {
    const berth = await startBerth({ data: folder.path });
    const revision = await checkLedger(berth, ledger);
    assert.ok(revision >= highest, `the revision fell from ${highest} to ${revision}`);
    highest = Math.max(revision, ...ledger.revisions.slice(-writers * 2));
    await writeAndKill(berth, { ledger, seen, round });
  }
  const berth = await startBerth({ data: folder.path });
  t.after(() => berth.stop());
  await checkLedger(berth, ledger);
  await catchUp(berth, seen);
  await checkWatch(berth, { ledger, seen });
  t.diagnostic(`${ledger.writes} writes acknowledged, ${seen.revisions.size} changes watched`);
  assert.ok(ledger.writes > kills * writers, "the writers hardly wrote anything");
});

async function writeAndKill(
  berth: Berth,
  run: { readonly ledger: Ledger; readonly seen: Seen; readonly round: number },
): Promise<void> {
  const http = connect(berth, writers);
  const watch = watchOn(berth, run.seen);
  await watch.opened;
  const writing = Array.from({ length: writers }, (_, writer) =>
    writeUntilBroken({
      http,
      ledger: run.ledger,
      writer: `r${run.round}-w${writer}`,
      payload: (count) => "x".repeat((count * 97) % 2_000),
      isStopped: () => false,
    }),
  );
  // The moment of death is spread over start-up, the middle of a batch and a checkpoint.
  const afterWrites = run.ledger.writes + ((run.round * 37) % 400);
  while (run.ledger.writes < afterWrites) await new Promise((resolve) => setImmediate(resolve));
  await berth.kill();
  await Promise.all(writing);
  await watch.ended;
  http.close();
}

/** Everything acknowledged is there as acknowledged, or newer where the last answer was lost. */
async function checkLedger(berth: Berth, ledger: Ledger): Promise<number> {
  const http = connect(berth);
  const list = bodyOf(await http.ask({ path: configMaps }));
  http.close();
  const stored = new Map<string, { revision: number; payload: string }>();
  for (const item of list.items) {
    const revision = Number(item.metadata.resourceVersion);
    stored.set(item.metadata.name, { revision, payload: item.data?.payload });
  }
  for (const [name, acknowledged] of ledger.acknowledged) {
    if (ledger.unknown.has(name)) continue;
    const found = stored.get(name);
    if (acknowledged === null) assert.equal(found, undefined, `${name} is back from the dead`);
    else assert.deepEqual(found, acknowledged, `${name} is not what was acknowledged`);
  }
  for (const name of stored.keys()) {
    const known = ledger.acknowledged.has(name) || ledger.unknown.has(name);
    assert.ok(known, `nobody ever wrote ${name}`);
  }
  return Number(list.metadata.resourceVersion);
}

function watchOn(berth: Berth, seen: Seen): ReturnType<typeof follow> {
  const from = `${configMaps}?watch=true&allowWatchBookmarks=true&resourceVersion=`;
  return follow(berth, `${from}${seen.revision === 0 ? 1 : seen.revision}`, (event) => {
    if (event.type === "ERROR") {
      seen.expired += 1;
      return;
    }
    const revision = Number(event.object.metadata.resourceVersion);
    if (revision < seen.revision) seen.disorder.push(`${revision} after ${seen.revision}`);
    seen.revision = revision;
    if (event.type === "BOOKMARK") return;
    seen.revisions.add(revision);
    if (event.type === "DELETED") seen.objects.delete(event.object.metadata.name);
    else seen.objects.set(event.object.metadata.name, revision);
  });
}

/** Lets the last watch run until it has seen the newest revision. */
async function catchUp(berth: Berth, seen: Seen): Promise<void> {
  const http = connect(berth);
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "the-end" } };
  const last = bodyOf(await http.ask({ method: "POST", path: configMaps, body }));
  http.close();
  const watch = watchOn(berth, seen);
  const target = Number(last.metadata.resourceVersion);
  while (seen.revision < target) await new Promise((resolve) => setTimeout(resolve, 10));
  watch.stop();
  await watch.ended;
}

/** The watch, resumed over every crash, saw each acknowledged write and ends in the same state. */
async function checkWatch(
  berth: Berth,
  run: { readonly ledger: Ledger; readonly seen: Seen },
): Promise<void> {
  assert.deepEqual(run.seen.disorder, []);
  assert.equal(run.seen.expired, 0, "a watch could not be resumed");
  const missed = run.ledger.revisions.filter((revision) => !run.seen.revisions.has(revision));
  assert.deepEqual(missed, [], "the watch has a gap");
  const http = connect(berth);
  const list = bodyOf(await http.ask({ path: configMaps }));
  http.close();
  const stored = new Map<string, number>();
  for (const item of list.items) {
    stored.set(item.metadata.name, Number(item.metadata.resourceVersion));
  }
  assert.deepEqual(run.seen.objects, stored);
}
