import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, vmImageKind, type VMImage, type WrittenVMImage } from "../api/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
const ownName = `berth-sha256-${sha256}.qcow2`;
const at = { namespace: "default", name: "remote" };
const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const disks = [{ name: "root", size: "3Gi", storage: "local-zfs" }];

type Stage = SimulatedWorld & { readonly process: { current: { crash: () => void } } };

/** An image that was brought to pve1 a few minutes ago, unless nothing needs it yet. */
async function open(
  options: Partial<StageOptions> = {},
  prefetch: WrittenVMImage["spec"]["prefetch"] = [{ hypervisor: "model" }],
): Promise<Stage> {
  const stage = await openProxmox("9.2", { ...nodesWeb, ...options });
  const process = { current: stage.world.start() };
  await declare(stage, { source: { http }, prefetch });
  const isReadyNow = async () => (await saidOf(stage)).startsWith("True");
  assert.ok(await until(stage.world, isReadyNow));
  await pass(stage, 5 * minuteMs);
  return { ...stage, process };
}

async function declare({ world }: SimulatedWorld, spec: WrittenVMImage["spec"]): Promise<void> {
  const apiVersion = "berth.dev/v1alpha1";
  await world.client.of(vmImageKind).create({ apiVersion, kind: "VMImage", metadata: at, spec });
}

const pass = ({ world }: SimulatedWorld, ms: number) => until(world, () => false, ms);

function imageOf({ world }: SimulatedWorld): Promise<VMImage> {
  return world.client.of(vmImageKind).get(at);
}

async function saidOf(stage: SimulatedWorld): Promise<string> {
  const { conditions = [] } = (await imageOf(stage)).status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  return `${ready?.status} ${ready?.reason}`;
}

/** A person removes the file from the storage, behind Berth's back. */
function removeFile({ proxmox }: SimulatedWorld): void {
  const { volumes } = proxmox.cluster.state;
  for (const [backing, rows] of Object.entries(volumes)) {
    volumes[backing] = rows.filter(({ name }) => !name.endsWith(ownName));
  }
}

/** A person destroys all VMs with their disks, behind Berth's back. */
function destroyVms({ proxmox }: SimulatedWorld): void {
  const { guests, volumes } = proxmox.cluster.state;
  for (const id of Object.keys(guests)) delete guests[id];
  for (const [backing, rows] of Object.entries(volumes)) {
    volumes[backing] = rows.filter(({ vmid }) => vmid === undefined);
  }
}

function hasFile({ proxmox }: SimulatedWorld): boolean {
  const rows = Object.values(proxmox.cluster.state.volumes).flat();
  return rows.some(({ name }) => name.endsWith(ownName));
}

async function retry({ world }: SimulatedWorld): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
  await world.client.of(vmImageKind).patch(at, { merge });
}

function listsOf({ requests }: SimulatedWorld): number {
  return requests.filter(({ path }) => path.endsWith("/storage/local/content")).length;
}

async function isReported({ world }: SimulatedWorld): Promise<boolean> {
  const vm = await getVm(world.client, "web");
  return vm?.status?.failure?.category === "ImageNotFound";
}

/** For how long the VM says that the file is missing, and the image that it is available. */
async function contradictionMs(stage: Stage, ms: number): Promise<number> {
  let seconds = 0;
  for (let passedMs = 0; passedMs < ms; passedMs += secondMs) {
    await pass(stage, secondMs);
    const isMissed = await isReported(stage);
    if (isMissed && (await saidOf(stage)) === "True Available") seconds += 1;
  }
  return seconds * secondMs;
}

async function createFromImage({ world }: SimulatedWorld, more: object = {}): Promise<void> {
  const source = { image: { name: "remote" } };
  await createVm(world.client, "web", { source, disks, placement: { node: "pve1" }, ...more });
}

describe("an image file that somebody removed", () => {
  it("is looked for at once when a person asks for a retry, and brought again", async () => {
    const stage = await open();
    removeFile(stage);
    await pass(stage, minuteMs);
    assert.equal(await saidOf(stage), "True Available", "nobody has looked");
    await retry(stage);
    const isNoticed = async () => (await saidOf(stage)) !== "True Available";
    assert.ok(await until(stage.world, isNoticed, 3 * secondMs), await saidOf(stage));
    assert.ok(await until(stage.world, () => hasFile(stage), minuteMs));
    assert.ok(await until(stage.world, async () => (await saidOf(stage)) === "True Available"));
  });

  it("is looked for once for each request of a person", async () => {
    const stage = await open();
    const before = listsOf(stage);
    await retry(stage);
    await pass(stage, 5 * minuteMs);
    assert.equal(listsOf(stage) - before, 1);
  });

  it("is looked for when the hypervisor is back, if a person asked while it was away", async () => {
    const line = { isCut: false };
    const stage = await open({
      between: (request, send) => {
        return line.isCut ? Promise.resolve({ type: "lost", detail: "no route" }) : send(request);
      },
    });
    removeFile(stage);
    line.isCut = true;
    await pass(stage, 2 * minuteMs);
    await retry(stage);
    await pass(stage, 10 * secondMs);
    line.isCut = false;
    assert.ok(await until(stage.world, () => hasFile(stage), 3 * minuteMs), await saidOf(stage));
  });

  it("is looked for when a VM does not find it, and the VM is created", async () => {
    const stage = await open();
    removeFile(stage);
    await createFromImage(stage);
    const apartMs = await contradictionMs(stage, 5 * minuteMs);
    assert.ok(apartMs <= 3 * secondMs, `${apartMs} ms`);
    const vm = await getVm(stage.world.client, "web");
    assert.ok(isReady(vm), JSON.stringify(vm?.status));
  });

  it("is brought again for a VM that is recreated", async () => {
    const stage = await open({}, []);
    await createFromImage(stage, { onMissing: "Recreate" });
    const isMade = async () => isReady(await getVm(stage.world.client, "web"));
    assert.ok(await until(stage.world, isMade));
    removeFile(stage);
    destroyVms(stage);
    assert.ok(await until(stage.world, async () => !(await isMade()), 5 * minuteMs));
    assert.ok(await until(stage.world, isMade, 5 * minuteMs), await saidOf(stage));
  });

  for (const how of ["the storage cannot be listed", "Berth is killed"]) {
    it(`is looked for also if ${how} just when a VM has reported it`, async () => {
      const lost = { type: "lost", detail: "no route" } as const;
      const told: { at?: string; isArmed?: true } = {};
      const stage: Stage = await open({
        between: async (request, send) => {
          const isList = told.isArmed && request.path.endsWith("/storage/local/content");
          if (told.at !== undefined || !isList || !(await isReported(stage))) return send(request);
          told.at = await saidOf(stage);
          if (how === "Berth is killed") stage.process.current.crash();
          return lost;
        },
      });
      told.isArmed = true;
      removeFile(stage);
      await createFromImage(stage);
      assert.ok(await until(stage.world, () => told.at !== undefined));
      assert.equal(told.at, "True Available");
      if (how === "Berth is killed") stage.process.current = stage.world.start();
      const isMade = async () => isReady(await getVm(stage.world.client, "web"));
      assert.ok(await until(stage.world, isMade, 3 * minuteMs), await saidOf(stage));
    });
  }
});
