import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { runBerth } from "./support/berth.ts";
import { eventually, pause } from "./support/eventually.ts";
import { bodyOf } from "./support/http.ts";
import { machineOf, machines, patch } from "./support/lab.ts";
import { fill, mountSmall, remount, unmount } from "./support/small-disk.ts";
import { isAsked, Stage } from "./support/stage.ts";
import "./support/cleanup.ts";

const hourMs = 60 * 60_000;

async function openStage(t: TestContext): Promise<Stage> {
  const stage = await Stage.open();
  t.after(() => stage.remove());
  return stage;
}

/** Its data folder is on a small disk of its own; says why not, if it cannot be. */
async function openSmallStage(t: TestContext): Promise<Stage | string> {
  const stage = await Stage.open();
  const disk = join(stage.folder.path, "data");
  mkdirSync(disk);
  const refused = mountSmall(disk, 64);
  t.after(async () => {
    await stage.end();
    if (refused === undefined) unmount(disk);
    await stage.remove();
  });
  return refused ?? stage;
}

describe("a data folder", () => {
  test("on a full disk lets nothing be done that could not be written down before", async (t) => {
    const stage = await openSmallStage(t);
    if (typeof stage === "string") return t.skip(stage);
    await stage.start();
    await stage.prepare();
    await stage.ask("create");
    const filler = join(stage.data, "filler");
    fill(filler, stage.data, 0);
    await eventually(
      async () => (await writeMuch(stage)) === 507,
      () => "the disk never ran full",
    );
    const before = await stage.simulator.get("/cluster/tasks");
    await pause(3_000);
    const after = await stage.simulator.get("/cluster/tasks");
    // What was under way may end; nothing begins, since no intent can be written.
    assert.ok(after.length <= before.length + 1, `${before.length} tasks, then ${after.length}`);
    rmSync(filler);
    await stage.settle("create");
    await stage.ask("delete");
    await stage.settle("delete");
  });

  for (const [refusal, failpoint] of [
    ["refuses a write", "before-flush@5=error"],
    ["does not say whether it has written", "after-flush@5=error"],
  ] as const) {
    test(`on a disk that ${refusal} has one machine per declaration`, async (t) => {
      const stage = await openStage(t);
      await stage.start({ BERTH_FAILPOINT: failpoint });
      await stage.prepare();
      stage.arm();
      await stage.ask("create").catch(() => undefined);
      await pause(3_000);
      await stage.goOn();
      await stage.ask("create");
      await stage.settle("create", 150_000);
      await stage.ask("delete");
      await stage.settle("delete");
    });
  }

  test("that cannot be written from the start is refused in one sentence", async (t) => {
    const stage = await openSmallStage(t);
    if (typeof stage === "string") return t.skip(stage);
    await stage.start();
    await stage.end();
    remount(stage.data, "ro");
    const { code, stderr } = await runBerth([
      "up",
      "--no-demo",
      "--port",
      "0",
      "--data",
      stage.data,
    ]);
    remount(stage.data, "rw");
    assert.equal(code, 1, stderr);
    assert.equal(stderr.trim().split("\n").length, 1, stderr);
    assert.doesNotMatch(stderr, /\n\s+at /);
  });
});

describe("a wall clock", () => {
  for (const [words, jumpMs] of [
    ["an hour ahead", hourMs],
    ["an hour behind", -hourMs],
  ] as const) {
    test(`that jumps ${words} while machines are made and replies are lost does no harm`, async (t) => {
      const stage = await openStage(t);
      await stage.start({ ...ownClock(stage), BERTH_FAILPOINT: "after-effect@1=error" });
      await stage.prepare();
      stage.arm();
      await stage.ask("create");
      await pause(400);
      jump(stage, jumpMs);
      await stage.settle("create", 240_000);
      // Another life with the wrong clock from the start, which dies of it.
      await stage.start({ ...ownClock(stage), BERTH_FAILPOINT: "after-effect@2" });
      stage.arm();
      await stage.ask("change");
      await stage.diedAt("after-effect");
      jump(stage, 0);
      await stage.start({ ...ownClock(stage) });
      await stage.settle("change", 240_000);
      jump(stage, -jumpMs);
      await stage.ask("delete");
      await stage.settle("delete", 240_000);
    });
  }
});

/** The clock of Berth alone: the hypervisor's goes right. */
function ownClock(stage: Stage): { readonly BERTH_CLOCK_SKEW_FILE: string } {
  return { BERTH_CLOCK_SKEW_FILE: join(stage.folder.path, "own-skew") };
}

function jump(stage: Stage, ms: number): void {
  writeFileSync(join(stage.folder.path, "own-skew"), String(ms));
}

describe("an old backup", () => {
  test("that is restored deletes no machine, no disk, and makes none anew", async (t) => {
    const stage = await openStage(t);
    await stage.start();
    await stage.prepare();
    await stage.ask("create");
    await stage.settle("create");
    const backup = join(stage.folder.path, "monday.backup");
    const saved = await runBerth(["backup", backup, "--with-key", "--data", stage.data]);
    assert.equal(saved.code, 0, saved.stderr);
    // After the backup: one machine more, a disk more, and one machine less.
    await stage.http.ask({ method: "POST", path: machines, body: machineOf("since") });
    const disks = [
      { name: "root", size: "4Gi" },
      { name: "since", size: "1Gi" },
    ];
    await patch(stage.http, `${machines}/first`, { spec: { disks } });
    await stage.http.ask({ method: "DELETE", path: `${machines}/second` });
    await eventually(
      async () => {
        const { items } = bodyOf(await stage.http.ask({ path: machines }));
        return items.length === 2 && items.every(isAsked);
      },
      () => "the changes after the backup were never done",
    );
    const before = await stage.standing();
    assert.deepEqual(before.names, ["first", "since"]);
    await stage.end();
    const restored = await runBerth(["restore", backup, "--force", "--data", stage.data]);
    assert.equal(restored.code, 0, restored.stderr);
    await stage.start();
    await eventually(
      async () => (await failureOf(stage, "second")) === "Missing",
      () => "the machine that was deleted is not reported as missing",
    );
    // Time enough for a rash program to put the world right.
    await pause(10_000);
    assert.deepEqual(await stage.standing(), before);
  });
});

async function failureOf(stage: Stage, name: string): Promise<string | undefined> {
  const reply = await stage.http.ask({ path: `${machines}/${name}` });
  return reply.status === 200 ? bodyOf(reply).status?.failure?.category : undefined;
}

async function writeMuch({ http }: Stage): Promise<number> {
  const metadata = { generateName: "much-" };
  const data = { payload: "x".repeat(500_000) };
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
  const path = "/api/v1/namespaces/default/configmaps";
  return (await http.ask({ method: "POST", path, body })).status;
}
