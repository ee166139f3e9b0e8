import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, hypervisorKind, vmImageKind } from "../api/index.ts";
import type { Claim, VMImage } from "../api/index.ts";
import type { PveReply, Send } from "../drivers/proxmox/index.ts";
import { forgetLease } from "./index.ts";
import { nodesWeb, webOf } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { content, sha256 } from "./testing/small-disk.ts";
import { until } from "./testing/world.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const fileName = "mine.qcow2";
const at = { namespace: "default", name: "remote" };
const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };

type Volume = SimulatedWorld["proxmox"]["cluster"]["state"]["volumes"][string][number];
type Request = Parameters<Send>[0];

async function declare({ world }: SimulatedWorld): Promise<void> {
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http }, fileName, prefetch: [{ hypervisor: "model" }] },
  });
}

async function imageOf({ world }: SimulatedWorld): Promise<VMImage | undefined> {
  const { items } = await world.client.of(vmImageKind).list();
  return items.find(({ metadata }) => metadata.name === at.name);
}

type Copy = NonNullable<NonNullable<VMImage["status"]>["copies"]>[number];

async function copyOf(stage: SimulatedWorld): Promise<Partial<Copy>> {
  return (await imageOf(stage))?.status?.copies?.[0] ?? {};
}

async function claimOf({ world }: SimulatedWorld): Promise<Partial<Claim["spec"]>> {
  const { items } = await world.client.of(claimKind).list();
  return items.find(({ spec }) => spec.target === "File")?.spec ?? {};
}

function fileOf({ proxmox }: SimulatedWorld): Volume | undefined {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  return volumes.find(({ name }) => name.endsWith(`/${fileName}`));
}

const pass = ({ world }: SimulatedWorld, ms: number) => until(world, () => false, ms);

async function present(stage: SimulatedWorld): Promise<Partial<Copy>> {
  const isPresent = await until(
    stage.world,
    async () => (await copyOf(stage)).state === "Present",
    hourMs,
  );
  assert.ok(isPresent, JSON.stringify((await imageOf(stage))?.status));
  return copyOf(stage);
}

async function remove(stage: SimulatedWorld): Promise<void> {
  await stage.world.client.of(vmImageKind).delete(at);
  const isGone = await until(stage.world, async () => (await imageOf(stage)) === undefined, hourMs);
  assert.ok(isGone, JSON.stringify((await imageOf(stage))?.status));
}

/** A person puts another file under the name, with the same size unless it is said. */
function replace(stage: SimulatedWorld, other: Partial<Volume> = {}): void {
  const file = fileOf(stage);
  assert.ok(file !== undefined);
  const createdMs = stage.world.clock.nowMs();
  Object.assign(file, { createdMs, sha256: "theirs", ...other });
}

interface Absence extends Partial<StageOptions> {
  /** How long the download takes. One that takes long is in the record before Berth goes down. */
  readonly tookMs?: number;
}

/** A stage on which a download has ended while Berth was down. */
async function openAfterAbsence({ tookMs = 0, ...more }: Absence = {}): Promise<SimulatedWorld> {
  const stage = await openProxmox("9.2", { ...nodesWeb, ...more });
  stage.proxmox.cluster.slowStorageMs = tookMs;
  const first = stage.world.start();
  await declare(stage);
  const isSent = await until(stage.world, () => {
    return stage.requests.some(({ path }) => path.endsWith("/download-url"));
  });
  assert.ok(isSent);
  if (tookMs > 0) await pass(stage, minuteMs);
  first.crash();
  await pass(stage, tookMs + 5 * minuteMs);
  assert.ok(fileOf(stage) !== undefined);
  return stage;
}

async function startAgain(stage: SimulatedWorld): Promise<void> {
  await forgetLease(stage.world.client);
  stage.world.start();
}

async function demandLeftAlone(stage: SimulatedWorld): Promise<void> {
  const { brought, verified } = await present(stage);
  assert.deepEqual([brought, verified], [false, false]);
  assert.equal((await claimOf(stage)).state, "Released");
  await remove(stage);
  assert.equal(fileOf(stage)?.sha256, "theirs");
}

/** Lists of tasks in which one is looked for by the second in which it began. */
function isTaskList({ method, path, params }: Request): boolean {
  return method === "GET" && path.endsWith("/tasks") && params?.["until"] !== undefined;
}

function withRows(reply: PveReply, change: (rows: object[]) => object[]): PveReply {
  if (reply.type !== "answered") return reply;
  const { data } = JSON.parse(reply.body) as { readonly data: object[] };
  return { ...reply, body: JSON.stringify({ data: change(data) }) };
}

describe("an image file that somebody replaced while Berth was down", () => {
  for (const tookMs of [0, 5 * minuteMs]) {
    const how = tookMs === 0 ? "is recalled" : "is in the record";
    for (const other of [{}, { sizeBytes: 77 }]) {
      const what = "sizeBytes" in other ? "of another size" : "of the same size";
      it(`is not called Berth's, and is not removed, where the task ${how}: ${what}`, async () => {
        const stage = await openAfterAbsence({ tookMs });
        replace(stage, other);
        await startAgain(stage);
        await demandLeftAlone(stage);
        assert.match((await claimOf(stage)).releaseReason ?? "", /after the task of Berth/);
      });
    }
  }

  for (const clockAheadMs of [-300_000, 300_000]) {
    it(`is noticed by a clock ${clockAheadMs} ms ahead`, async () => {
      const stage = await openAfterAbsence({ clockAheadMs });
      replace(stage);
      await startAgain(stage);
      await demandLeftAlone(stage);
    });
  }

  it("is not removed where its image went meanwhile", async () => {
    const stage = await openAfterAbsence();
    replace(stage);
    await stage.world.client.of(vmImageKind).delete(at);
    await startAgain(stage);
    await until(stage.world, async () => (await imageOf(stage)) === undefined, hourMs);
    assert.equal(fileOf(stage)?.sha256, "theirs");
  });

  it("is not called Berth's where the node lists its task no more", async () => {
    const stage = await openAfterAbsence({
      between: async (request, send) => {
        const reply = await send(request);
        return isTaskList(request) ? withRows(reply, () => []) : reply;
      },
    });
    replace(stage);
    await startAgain(stage);
    await demandLeftAlone(stage);
  });
});

describe("an image file that came while Berth was down, and that nobody touched", () => {
  for (const tookMs of [0, 5 * minuteMs]) {
    for (const clockAheadMs of [-300_000, 0, 300_000]) {
      it(`is Berth's after ${tookMs} ms, by a clock ${clockAheadMs} ms ahead`, async () => {
        const stage = await openAfterAbsence({ tookMs, clockAheadMs });
        await startAgain(stage);
        const { brought, verified } = await present(stage);
        assert.deepEqual([brought, verified], [true, true]);
        await remove(stage);
        assert.equal(fileOf(stage), undefined);
      });
    }
  }

  it("is waited for while the node has not noticed the end of its task", async () => {
    let asked = 0;
    const stage = await openAfterAbsence({
      between: async (request, send) => {
        const reply = await send(request);
        if (!isTaskList(request) || (asked += 1) > 3) return reply;
        return withRows(reply, (rows) => rows.map((row) => ({ ...row, endtime: undefined })));
      },
    });
    await startAgain(stage);
    const { brought, verified } = await present(stage);
    assert.deepEqual([asked, brought, verified], [4, true, true]);
  });
});

/** Uploads pass through Berth, and the worker of the first one is killed in its copy. */
async function openKilled(more: Partial<StageOptions> = {}): Promise<SimulatedWorld> {
  const stage = await openProxmox("9.2", more);
  const { world, proxmox } = stage;
  const merge = { spec: { imageDownload: "ViaBerth" } };
  await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  proxmox.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name.startsWith("imgcopy") && step.name === "copy upload",
  });
  world.start({ web: webOf(world.clock) });
  await declare(stage);
  const isTold = await until(world, async () => (await copyOf(stage)).failure !== undefined);
  assert.ok(isTold && fileOf(stage)?.sizeBytes === content.length / 2);
  return stage;
}

function uploads({ requests }: SimulatedWorld): number {
  return requests.filter(({ path }) => path.endsWith("/upload")).length;
}

async function loseStatus({ world }: SimulatedWorld): Promise<void> {
  const images = world.client.of(vmImageKind);
  const { status: _lost, ...rest } = await images.get(at);
  await images.updateStatus(rest);
}

describe("a person's file in the place of a part that an upload left", () => {
  const theirs = { sizeBytes: 1_000 };

  it("is not written over: it is reported, with what to do, and not removed", async () => {
    const stage = await openKilled();
    await pass(stage, 20_000);
    replace(stage, theirs);
    await pass(stage, 20 * minuteMs);
    assert.equal(uploads(stage), 1);
    const { state, failure } = await copyOf(stage);
    assert.equal(state, "Failed");
    assert.match(failure?.message ?? "", /has 1000 bytes, not the 4096.*left alone/);
    assert.match(failure?.remedy ?? "", /remove that file by hand/);
    await remove(stage);
    assert.equal(fileOf(stage)?.sha256, "theirs");
  });

  it("is not written over where the status that knew the part was lost", async () => {
    const stage = await openKilled();
    await pass(stage, 20_000);
    replace(stage, theirs);
    await loseStatus(stage);
    await pass(stage, 20 * minuteMs);
    assert.deepEqual([uploads(stage), fileOf(stage)?.sha256], [1, "theirs"]);
  });

  it("is not written over where it came in the same second", async () => {
    const stage = await openKilled();
    const { createdMs = 0 } = fileOf(stage) ?? {};
    replace(stage, { ...theirs, createdMs });
    await pass(stage, 20 * minuteMs);
    assert.deepEqual([uploads(stage), fileOf(stage)?.sha256], [1, "theirs"]);
  });

  it("is not removed with its image", async () => {
    const stage = await openKilled();
    await pass(stage, 20_000);
    replace(stage, theirs);
    await remove(stage);
    assert.equal(fileOf(stage)?.sha256, "theirs");
  });

  it("lets the image come once it was taken away", async () => {
    const stage = await openKilled();
    await pass(stage, 20_000);
    replace(stage, theirs);
    await pass(stage, 20 * minuteMs);
    for (const list of Object.values(stage.proxmox.cluster.state.volumes)) {
      const index = list.findIndex(({ name }) => name.endsWith(fileName));
      if (index >= 0) list.splice(index, 1);
    }
    const { brought, verified } = await present(stage);
    assert.deepEqual([brought, verified], [true, true]);
  });
});

describe("a part that an upload left, and that nobody touched", () => {
  it("is written over, also where the first retry is refused", async () => {
    let sent = 0;
    const refused = { type: "answered", status: 500, reason: "out of luck", body: "" } as const;
    const stage = await openKilled({
      between: async (request, send) => {
        if (!request.path.endsWith("/upload")) return send(request);
        sent += 1;
        return sent === 2 ? (refused as PveReply) : send(request);
      },
    });
    const { brought, verified } = await present(stage);
    assert.deepEqual([sent, brought, verified], [3, true, true]);
    assert.equal(fileOf(stage)?.sizeBytes, content.length);
    await remove(stage);
    assert.equal(fileOf(stage), undefined);
  });

  it("goes with its image", async () => {
    const stage = await openKilled();
    await remove(stage);
    assert.equal(fileOf(stage), undefined);
  });
});
