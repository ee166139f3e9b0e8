import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, hypervisorKind, virtualMachineKind, vmImageKind } from "../api/index.ts";
import type { VirtualMachine, VMImage } from "../api/index.ts";
import { answered } from "../hypervisor/index.ts";
import type { Web } from "./index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { content, sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, until } from "./testing/world.ts";

// How an operation ended counts only once the status tells it. Whatever happens before that, such
// as a write that is refused or a process that forgets, nothing is sent again as if nothing was.

const minuteMs = 60_000;
/** More than any pace allows. */
const requestsMost = 50;
const imageAt = { namespace: "default", name: "remote" };
const vmAt = { namespace: "default", name: "web" };
const disks = [{ name: "root", size: "4Gi", storage: "local-zfs" }];

interface Answer {
  readonly path: RegExp;
  readonly reason: string;
  /** Awaited while the request is answered. */
  readonly meanwhile?: (stage: SimulatedWorld, times: number) => Promise<unknown>;
}

interface Answering extends SimulatedWorld {
  /** When each request was answered so. */
  readonly timesMs: number[];
  readonly isOn: { value: boolean };
}

/** A cluster that answers some requests with an error while `isOn`. */
async function openAnswering({ path, reason, meanwhile }: Answer): Promise<Answering> {
  const timesMs: number[] = [];
  const isOn = { value: true };
  const opened: { stage?: SimulatedWorld } = {};
  const between: NonNullable<StageOptions["between"]> = async (request, send) => {
    const { stage } = opened;
    const isMeant = isOn.value && request.method !== "GET" && path.test(request.path);
    // A storm ends here, so that time goes on and the test fails.
    if (timesMs.length > requestsMost) return send(request);
    if (stage === undefined || !isMeant) return send(request);
    timesMs.push(stage.world.clock.monotonicMs());
    await meanwhile?.(stage, timesMs.length);
    return { type: "answered", status: 500, reason, body: "", from: "pve1" };
  };
  opened.stage = await openProxmox("9.2", { ...nodesWeb, between });
  return { ...opened.stage, timesMs, isOn };
}

const odd = "something odd happened";
const lock = "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout";

async function declareImage({ world }: SimulatedWorld): Promise<void> {
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: imageAt,
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }] },
  });
}

async function declareThrough(stage: SimulatedWorld): Promise<void> {
  const merge = { spec: { imageDownload: "ViaBerth" } };
  await stage.world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  await declareImage(stage);
}

function webOf(): Web {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    await Promise.resolve();
    yield content;
  }
  return {
    resolve: () => Promise.resolve(answered(["203.0.113.7"])),
    open: () => {
      const file = { sizeBytes: content.length, chunks: chunks(), close: () => undefined };
      return Promise.resolve(answered(file));
    },
  };
}

function imageOf({ world }: SimulatedWorld): Promise<VMImage> {
  return world.client.of(vmImageKind).get(imageAt);
}

async function vmOf({ world }: SimulatedWorld): Promise<VirtualMachine> {
  const vm = await getVm(world.client, "web");
  assert.ok(vm !== undefined);
  return vm;
}

function readyOf({ status }: VMImage): string {
  const { conditions = [] } = status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  return `${ready?.status ?? ""} ${ready?.reason ?? ""}`;
}

async function pass({ world, timesMs }: Answering, ms: number): Promise<void> {
  await until(world, () => timesMs.length > requestsMost, ms);
  assert.ok(timesMs.length <= requestsMost, `more than ${requestsMost} requests`);
}

/** Attempts that fail are some ten seconds apart, and more each time. */
function assertPaced({ timesMs }: Answering, times: number): void {
  assert.equal(timesMs.length, times, timesMs.join());
  const gaps = timesMs.slice(1).map((ms, index) => ms - (timesMs[index] ?? 0));
  assert.ok(Math.min(...gaps) >= 10_000, timesMs.join());
}

/** Somebody writes a label on the object: the next write over the version that was read fails. */
function label(of: "vm" | "image"): NonNullable<Answer["meanwhile"]> {
  return async ({ world: { client } }, times) => {
    const merge = { metadata: { labels: { times: String(times) } } };
    if (of === "vm") return client.of(virtualMachineKind).patch(vmAt, { merge });
    return client.of(vmImageKind).patch(imageAt, { merge });
  };
}

describe("a failure whose write to the status is refused", () => {
  it("is counted all the same before a VM is started again", async () => {
    const path = /\/status\/start$/;
    const stage = await openAnswering({ path, reason: odd, meanwhile: label("vm") });
    stage.world.start();
    await createVm(stage.world.client, "web", { disks, networks: [] });
    await pass(stage, 30 * minuteMs);
    assertPaced(stage, 5);
    assert.equal((await vmOf(stage)).status?.failure?.attempts, 5);
  });

  it("is counted all the same before a file is downloaded again", async () => {
    const path = /\/download-url$/;
    const stage = await openAnswering({ path, reason: odd, meanwhile: label("image") });
    stage.world.start();
    await declareImage(stage);
    await pass(stage, 30 * minuteMs);
    assertPaced(stage, 5);
    assert.equal((await imageOf(stage)).status?.copies?.[0]?.failure?.attempts, 5);
  });
});

describe("a failure of a VM that was paused meanwhile", () => {
  it("is told and counted when the VM goes on", async () => {
    const pause = async ({ world }: SimulatedWorld, value: string | null): Promise<unknown> => {
      const merge = { metadata: { annotations: { [annotations.paused]: value } } };
      return world.client.of(virtualMachineKind).patch(vmAt, { merge });
    };
    const meanwhile = (stage: SimulatedWorld, times: number): Promise<unknown> => {
      return times === 1 ? pause(stage, "true") : Promise.resolve();
    };
    const stage = await openAnswering({ path: /\/status\/start$/, reason: odd, meanwhile });
    stage.world.start();
    await createVm(stage.world.client, "web", { disks, networks: [] });
    await pass(stage, 5 * minuteMs);
    assert.equal(stage.timesMs.length, 1);
    await pause(stage, null);
    await pass(stage, 5_000);
    assert.equal(stage.timesMs.length, 1);
    assert.equal((await vmOf(stage)).status?.failure?.attempts, 1);
  });
});

describe("an upload that the hypervisor refuses", () => {
  it("is told, and sent again as seldom as any step that failed", async () => {
    const stage = await openAnswering({ path: /\/upload$/, reason: odd });
    await declareThrough(stage);
    stage.world.start({ web: webOf() });
    await pass(stage, 30 * minuteMs);
    assertPaced(stage, 5);
    const [copy] = (await imageOf(stage)).status?.copies ?? [];
    assert.deepEqual([copy?.state, copy?.failure?.attempts], ["Failed", 5]);
  });
});

describe("a lock in the way of a file", () => {
  for (const forgets of [false, true]) {
    const how = forgets ? ", by a process that forgets everything before each turn" : "";
    it(`is waited for without a failure${how}`, async () => {
      const stage = await openAnswering({ path: /\/download-url$/, reason: lock });
      stage.world.start({ forgets: () => forgets });
      await declareImage(stage);
      await pass(stage, 10 * minuteMs);
      const image = await imageOf(stage);
      assert.equal(readyOf(image), "False Waiting");
      assert.equal(image.status?.waitingFor?.kind, "Lock");
      assert.match(image.status?.waitingFor?.name ?? "", /lock/);
      assert.equal(image.status?.copies?.[0]?.failure, undefined);
      assert.ok(stage.timesMs.length >= 10, stage.timesMs.join());
      stage.isOn.value = false;
      const isThere = await until(stage.world, async () => {
        return readyOf(await imageOf(stage)) === "True Available";
      });
      assert.ok(isThere, JSON.stringify((await imageOf(stage)).status));
      assert.equal((await imageOf(stage)).status?.waitingFor, undefined);
    });
  }

  it("is told of an image that is being deleted", async () => {
    const stage = await openAnswering({ path: /\/content\//, reason: lock });
    stage.world.start();
    await declareImage(stage);
    const isThere = async (): Promise<boolean> =>
      readyOf(await imageOf(stage)) === "True Available";
    assert.ok(await until(stage.world, isThere));
    await stage.world.client.of(vmImageKind).delete(imageAt);
    await pass(stage, 5 * minuteMs);
    assert.equal(readyOf(await imageOf(stage)), "False Waiting");
    stage.isOn.value = false;
    const isGone = await until(stage.world, async () => {
      const { items } = await stage.world.client.of(vmImageKind).list();
      return items.every(({ metadata }) => metadata.name !== imageAt.name);
    });
    assert.ok(isGone);
  });
});
