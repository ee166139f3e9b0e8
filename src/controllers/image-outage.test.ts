import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { vmImageKind, type VMImage } from "../api/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { until } from "./testing/world.ts";

const at = { namespace: "default", name: "remote" };
const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const attemptsMost = 5;

interface Stage extends SimulatedWorld {
  readonly line: { isCut: boolean };
  /** The nodes that were asked for a download, in order. All refuse. */
  readonly asked: string[];
  restart(): void;
}

/** An image whose download every node refuses. */
async function open(): Promise<Stage> {
  const line = { isCut: false };
  const asked: string[] = [];
  const refused = { type: "answered", status: 500, reason: "something odd happened", body: "" };
  const between: StageOptions["between"] = async (request, send) => {
    if (line.isCut) return { type: "lost", detail: "no route" };
    if (!request.path.endsWith("/download-url")) return send(request);
    asked.push(request.path.split("/")[2] ?? "");
    return refused as never;
  };
  const stage = await openProxmox("9.2", { ...nodesWeb, between });
  let process = stage.world.start();
  const restart = (): void => {
    process.crash();
    process = stage.world.start();
  };
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await stage.world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }] },
  });
  return { ...stage, line, asked, restart };
}

const pass = ({ world }: SimulatedWorld, ms: number) => until(world, () => false, ms);

function imageOf({ world }: SimulatedWorld): Promise<VMImage> {
  return world.client.of(vmImageKind).get(at);
}

/** The counted downloads at each place that has an entry, and what Ready says. */
async function saidOf(stage: SimulatedWorld): Promise<[(number | undefined)[], string]> {
  const { copies = [], conditions = [] } = (await imageOf(stage)).status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  const counts = copies.map(({ failure, failedSteps = [] }) => {
    const failures = failure === undefined ? failedSteps : [...failedSteps, failure];
    return failures.find(({ step }) => step === "Download")?.attempts;
  });
  return [counts, `${ready?.status} ${ready?.reason}`];
}

describe("a download that is refused", () => {
  for (const awayMs of [minuteMs, 3 * minuteMs]) {
    it(`is not asked for more often with the hypervisor away ${awayMs} ms of 5 min`, async () => {
      const stage = await open();
      for (let times = 0; times < 8; times += 1) {
        await pass(stage, 5 * minuteMs - awayMs);
        const [attempts] = await saidOf(stage);
        stage.line.isCut = true;
        await pass(stage, awayMs);
        assert.deepEqual(await saidOf(stage), [attempts, "Unknown Unreachable"]);
        stage.line.isCut = false;
      }
      assert.equal(stage.asked.length, attemptsMost);
      await pass(stage, minuteMs);
      assert.deepEqual(await saidOf(stage), [[attemptsMost], "False CreationFailed"]);
    });
  }

  it("is not asked for more often where Berth is killed again and again", async () => {
    const stage = await open();
    for (let times = 0; times < 20; times += 1) {
      await pass(stage, 47 * secondMs);
      stage.restart();
    }
    await pass(stage, 20 * minuteMs);
    assert.equal(stage.asked.length, attemptsMost);
  });

  it("is still counted while a process that has just started cannot connect", async () => {
    const stage = await open();
    await until(stage.world, () => stage.asked.length === 2);
    await pass(stage, secondMs);
    const [attempts] = await saidOf(stage);
    stage.line.isCut = true;
    stage.restart();
    for (let seconds = 0; seconds < 180; seconds += 1) {
      await pass(stage, secondMs);
      const [kept, ready] = await saidOf(stage);
      assert.deepEqual(kept, attempts);
      assert.notEqual(ready, "False Missing");
    }
    assert.deepEqual(await saidOf(stage), [attempts, "Unknown Unreachable"]);
  });

  it("is not asked for more often where nodes come and go", async () => {
    const stage = await open();
    const { proxmox, asked } = stage;
    await until(stage.world, () => asked.length > 0);
    const [first = ""] = asked;
    for (let times = 0; times < 8; times += 1) {
      proxmox.crashNode(first);
      await pass(stage, 3 * minuteMs);
      proxmox.startNode(first);
      await pass(stage, 2 * minuteMs);
    }
    const counts = Map.groupBy(asked, (node) => node);
    for (const [node, all] of counts)
      assert.ok(all.length <= attemptsMost, `${node} ${all.length}`);
  });

  it("is forgotten where the spec does not name the place any more, once that was seen", async () => {
    const stage = await open();
    await until(stage.world, () => stage.asked.length === 2);
    stage.line.isCut = true;
    await pass(stage, minuteMs);
    const merge = { spec: { prefetch: null } };
    await stage.world.client.of(vmImageKind).patch(at, { merge });
    await pass(stage, 10 * minuteMs);
    assert.equal((await saidOf(stage))[0].length, 1, "nothing is concluded");
    stage.line.isCut = false;
    const isForgotten = async () => (await saidOf(stage))[1] === "True OnDemand";
    assert.ok(await until(stage.world, isForgotten, 10 * minuteMs));
    assert.deepEqual(await saidOf(stage), [[], "True OnDemand"]);
  });
});
