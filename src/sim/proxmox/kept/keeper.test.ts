import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { Stage } from "../fixture.ts";
import { readDataFile } from "./data-file.ts";
import { type Keeper, keeperOf } from "./keeper.ts";

interface Scene {
  readonly stage: Stage;
  readonly keeper: Keeper;
  readonly path: string;
  readonly lines: () => number;
}

function newScene(t: TestContext): Scene {
  const folder = mkdtempSync(join(tmpdir(), "berth-keeper-"));
  const path = join(folder, "cluster.json");
  const stage = new Stage();
  const keeper = keeperOf(path, { secret: "kept" }, () => stage.model.cluster);
  keeper.save();
  t.after(() => {
    keeper.close();
    rmSync(folder, { recursive: true });
  });
  return { stage, keeper, path, lines: () => readFileSync(path, "utf8").split("\n").length - 1 };
}

function kept({ stage, path }: Scene): void {
  const state: unknown = JSON.parse(stage.model.save());
  assert.deepEqual(readDataFile(path), { secret: "kept", state });
}

test("what a call changed is in the file once it is saved, and so is what its worker does", async (t) => {
  const scene = newScene(t);
  const { stage, keeper } = scene;
  await stage.does("POST", "/nodes/pve1/qemu", { vmid: 100, scsi0: "local-zfs:1" });
  keeper.saveChanges();
  kept(scene);
  assert.equal(scene.lines(), 2);
  await stage.call("POST", "/nodes/pve1/qemu/100/status/start");
  keeper.saveChanges();
  kept(scene);
  stage.clock.advance(60_000);
  keeper.saveChanges();
  kept(scene);
  assert.equal(scene.lines(), 4);
});

test("what a timer did without any process is noticed too", (t) => {
  const scene = newScene(t);
  const { cluster } = scene.stage.model;
  cluster.clock.after(10, () => void (cluster.state.clusterName = "other"));
  scene.stage.clock.advance(10);
  scene.keeper.saveChanges();
  kept(scene);
});

test("calls that only read do not make it look for changes", async (t) => {
  const { stage, keeper, lines } = newScene(t);
  await stage.call("POST", "/nodes/pve1/qemu", { vmid: 100 });
  stage.clock.advance(60_000);
  keeper.saveChanges();
  const before = lines();
  stage.model.cluster.state.clusterName = "changed by hand";
  await stage.call("GET", "/nodes/pve1/qemu/100/config");
  await stage.call("GET", "/cluster/resources");
  keeper.saveChanges();
  assert.equal(lines(), before);
  keeper.save();
  assert.equal(lines(), before + 1);
});

test("another cluster in its place is written anew", (t) => {
  const scene = newScene(t);
  scene.stage.reload();
  scene.keeper.saveChanges();
  kept(scene);
  assert.equal(scene.lines(), 1);
});

test("nothing is written to the file after the end: it may be somebody else's", (t) => {
  const { stage, keeper, path } = newScene(t);
  keeper.close();
  writeFileSync(path, "somebody else's");
  stage.model.setLock(100, "backup");
  stage.model.writeGuestFile("pve1", 100, "cores: 1\n");
  keeper.save();
  assert.equal(readFileSync(path, "utf8"), "somebody else's");
});

test("a worker that was killed, without a turn of its own, is noticed too", async (t) => {
  const scene = newScene(t);
  const { stage, keeper } = scene;
  const { data } = await stage.call("POST", "/nodes/pve1/qemu", { vmid: 100, scsi0: "local:1" });
  keeper.saveChanges();
  stage.model.killWorker(String(data));
  keeper.saveChanges();
  kept(scene);
});
