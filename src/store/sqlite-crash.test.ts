import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { test } from "node:test";
import { openStore } from "./open-store.ts";
import { openSqliteJournal } from "./sqlite-journal.ts";
import type { Store } from "./store.ts";

const roundCount = 3;
const acknowledgedPerRound = 100;

test("kill -9 in the middle of writing loses no acknowledged write", async () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-crash-"));
  const path = join(folder, "store.db");
  try {
    const acknowledged = new Map<string, number>();
    for (let round = 0; round < roundCount; round++) {
      await writeUntilKilled(path, round, acknowledged);
      await expectAll(path, acknowledged);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/**
 * Lets another process write and report what was acknowledged, and kills it while it does. The
 * reports come over a descriptor of their own: Node makes its standard output non-blocking when a
 * Worker starts, and then `writeSync` fails with EAGAIN as soon as this side reads too slowly.
 */
async function writeUntilKilled(
  path: string,
  round: number,
  acknowledged: Map<string, number>,
): Promise<void> {
  const flags = ["--input-type=module", "--eval", writerScript(path, round)];
  const child = spawn(process.execPath, flags, {
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  const exited = once(child, "exit");
  const reports = child.stdio[3];
  assert.ok(reports instanceof Readable);
  let newest = Math.max(0, ...acknowledged.values());
  let heard = 0;
  for await (const line of createInterface({ input: reports })) {
    const [id = "", revision] = line.split(" ");
    assert.ok(Number(revision) > newest, `revision ${revision} came after ${newest}`);
    newest = Number(revision);
    acknowledged.set(id, newest);
    if (++heard === acknowledgedPerRound) child.kill("SIGKILL");
  }
  assert.deepEqual(await exited, [null, "SIGKILL"]);
}

/** Eight writers, each on keys of its own, without end. A line is written in one piece. */
function writerScript(path: string, round: number): string {
  return `
    import { writeSync } from "node:fs";
    import { openStore, openSqliteJournal } from "${new URL("./index.ts", import.meta.url).href}";
    const clock = { nowMs: () => 0, monotonicMs: () => 0, bootId: "test", after: () => () => {} };
    const journal = await openSqliteJournal({ path: ${JSON.stringify(path)} });
    const store = await openStore({ journal, clock });
    const encode = (revision) => new TextEncoder().encode(String(revision).padStart(500));
    const write = async (writer) => {
      for (let i = 0; ; i++) {
        const key = { bucket: "things", id: \`${round}/\${writer}/\${i}\` };
        const { entry } = await store.write(key, () => ({ do: "put", encode }));
        writeSync(3, \`\${entry.id} \${entry.revision}\\n\`);
      }
    };
    for (let writer = 0; writer < 8; writer++) write(writer);
  `;
}

async function expectAll(path: string, acknowledged: ReadonlyMap<string, number>): Promise<void> {
  const store = await open(path);
  for (const [id, revision] of acknowledged) {
    const entry = store.get({ bucket: "things", id });
    assert.equal(entry?.revision, revision, `${id} was acknowledged`);
    assert.equal(Number(new TextDecoder().decode(entry?.value)), revision);
  }
  await store.close();
}

async function open(path: string): Promise<Store> {
  const clock = { nowMs: () => 0, monotonicMs: () => 0, bootId: "test", after: () => () => {} };
  return openStore({ journal: await openSqliteJournal({ path }), clock });
}
