import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect } from "./support/http.ts";
import { fill, mountSmall, unmount } from "./support/small-disk.ts";
import { configMapPath, createLedger, writeUntilBroken } from "./support/writers.ts";
import "./support/cleanup.ts";

const megabytes = 128;

test("a full disk refuses writes clearly, and loses nothing, also over kill -9", async (t) => {
  const folder = temporaryFolder("full");
  const refusedMount = mountSmall(folder.path, megabytes);
  if (refusedMount !== undefined) {
    folder.remove();
    return t.skip(refusedMount);
  }
  t.after(() => {
    unmount(folder.path);
    folder.remove();
  });
  const data = join(folder.path, "data");
  const filler = join(folder.path, "filler");
  const ledger = createLedger();

  for (let round = 0; round < 6; round++) {
    const berth = await startBerth({ data });
    const http = connect(berth, 32);
    await checkAll(http, ledger);
    // A little room is left, so that the disk fills up in the middle of writing.
    fill(filler, folder.path, 3 * 1024 * 1024);
    let stop = false;
    const writing = Array.from({ length: 32 }, (_, writer) =>
      writeUntilBroken({
        http,
        ledger,
        writer: `r${round}-w${writer}`,
        payload: () => "x".repeat(8_000),
        isStopped: () => stop,
      }),
    );
    const refusedBefore = ledger.refused;
    while (ledger.refused < refusedBefore + 64) await tick();
    await checkRefusal(http);
    await checkReads(http);
    if (round % 2 === 0) {
      await berth.kill();
      stop = true;
      await Promise.all(writing);
      rmSync(filler, { force: true });
    } else {
      rmSync(filler, { force: true });
      const before = ledger.writes;
      while (ledger.writes < before + 64) await tick();
      stop = true;
      await Promise.all(writing);
      await prune(http, ledger);
      assert.equal(await berth.stop(), 0);
    }
    http.close();
  }
  const berth = await startBerth({ data });
  t.after(() => berth.stop());
  const http = connect(berth);
  await checkAll(http, ledger);
  http.close();
  t.diagnostic(`${ledger.writes} writes stored, ${ledger.refused} refused`);
});

async function checkRefusal(http: ReturnType<typeof connect>): Promise<void> {
  const body = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "too-much" },
    data: { payload: "x".repeat(900_000) },
  };
  for (let attempt = 0; attempt < 50; attempt++) {
    const path = "/api/v1/namespaces/default/configmaps";
    const reply = await http.ask({ method: "POST", path, body });
    if (reply.status === 201) {
      await http.ask({ method: "DELETE", path: configMapPath("too-much") });
      continue;
    }
    assert.equal(reply.status, 507, reply.text);
    assert.match(bodyOf(reply).message, /full|space/i);
    assert.equal(bodyOf(reply).kind, "Status");
    return;
  }
  assert.fail("the disk never ran full");
}

/** A full disk stops writes, not reads. */
async function checkReads(http: ReturnType<typeof connect>): Promise<void> {
  assert.equal((await http.ask({ path: "/api/v1/namespaces/default" })).status, 200);
}

async function checkAll(
  http: ReturnType<typeof connect>,
  ledger: ReturnType<typeof createLedger>,
): Promise<void> {
  const list = bodyOf(await http.ask({ path: "/api/v1/namespaces/default/configmaps" }));
  const stored = new Map<string, { revision: number; payload: string }>();
  for (const item of list.items) {
    const revision = Number(item.metadata.resourceVersion);
    stored.set(item.metadata.name, { revision, payload: item.data?.payload });
  }
  for (const [name, acknowledged] of ledger.acknowledged) {
    if (ledger.unknown.has(name)) continue;
    if (acknowledged === null) assert.equal(stored.get(name), undefined, name);
    else assert.deepEqual(stored.get(name), acknowledged, name);
  }
}

/** Makes room for the next round the way a user would: by deleting. */
async function prune(
  http: ReturnType<typeof connect>,
  ledger: ReturnType<typeof createLedger>,
): Promise<void> {
  const path = "/api/v1/namespaces/default/configmaps";
  const reply = await http.ask({ method: "DELETE", path });
  assert.equal(reply.status, 200, reply.text);
  for (const name of ledger.acknowledged.keys()) ledger.acknowledged.set(name, null);
  ledger.unknown.clear();
}

function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
