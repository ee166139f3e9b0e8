import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../api/builtin/index.ts";
import { claimKind, hypervisorKind, virtualMachineKind, vmImageKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { answered } from "../hypervisor/index.ts";
import { sleep, type Clock } from "../kernel/clock.ts";
import type { ModelOptions, Release } from "../sim/index.ts";
import type { Web } from "./index.ts";
import {
  configure,
  decide,
  leaveVolume,
  orphanOf,
  strip,
  waitForOrphan,
} from "./orphan/testing.ts";
import { content, sha256 } from "./testing/small-disk.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

// Before each turn everything that the process remembers is dropped. What is sent to the hypervisor
// has to be the same, VM by VM, as with a memory, and the status is not written more often.

const statusWritesMost = 12;
const storage = "local-zfs";
const root = { name: "root", size: "10Gi", storage };
const data = { name: "data", size: "2Gi", storage, onDelete: "Retain" as const };
const spare = { name: "spare", size: "2Gi", storage };
const disks = [root, data];
const blank = { source: { blank: {} }, networks: [] };

interface Story {
  readonly name: string;
  readonly release: Release;
  readonly tell: (stage: SimulatedWorld) => Promise<void>;
}

// Releases take turns. 7.4 has no content type for image files and cannot import one, so there a VM
// is blank, cloned from a blank one, or adopted.
const stories: readonly Story[] = [
  {
    name: "a VM is made from an image",
    release: "8.4",
    tell: (stage) => make(stage, "web", { disks }),
  },
  {
    name: "a VM is made with blank disks",
    release: "7.4",
    tell: (stage) => make(stage, "web", { ...blank, disks }),
  },
  { name: "a VM is made with a seed, which is taken away again", release: "7.4", tell: makeSeeded },
  { name: "a VM that stands is adopted", release: "7.4", tell: adopt },
  {
    name: "a VM is cloned",
    release: "9.2",
    tell: async (stage) => {
      await make(stage, "web", { disks, powerState: "Stopped" });
      const clone = { vmRef: { name: "web" } };
      await make(stage, "copy", { externalId: "301", source: { clone }, disks });
    },
  },
  {
    name: "a VM is edited",
    release: "8.4",
    tell: async (stage) => {
      await make(stage, "web", { disks });
      const grown = [{ ...root, size: "12Gi" }, data];
      await edit(stage, { cpu: { cores: 4 }, updatePolicy: "Reboot", disks: grown });
    },
  },
  {
    name: "a disk is moved to another storage",
    release: "9.2",
    tell: async (stage) => {
      await make(stage, "web", { disks });
      await edit(stage, { disks: [root, { ...data, storage: "local" }] });
    },
  },
  {
    name: "a disk that is Absent is destroyed",
    release: "7.4",
    tell: async (stage) => {
      await make(stage, "web", { ...blank, disks: [root, spare], powerState: "Stopped" });
      await edit(stage, { disks: [root, { ...spare, state: "Absent" }] });
    },
  },
  {
    name: "a VM is migrated to another node",
    release: "8.4",
    tell: async (stage) => {
      await make(stage, "web", { disks: [root] });
      await edit(stage, { placement: { node: "pve2", mode: "Enforce" } });
      assert.equal((await getVm(stage.world.client, "web"))?.status?.node, "pve2");
    },
  },
  {
    name: "a VM is suspended and goes on",
    release: "9.2",
    tell: async (stage) => {
      await make(stage, "web", { disks: [root] });
      await edit(stage, { powerState: "Suspended" });
      await edit(stage, { powerState: "Running" });
    },
  },
  {
    name: "a VM with a Retain disk is deleted",
    release: "8.4",
    tell: async (stage) => {
      await make(stage, "web", { disks });
      await remove(stage);
    },
  },
  {
    name: "a VM takes back the disks that were kept for it",
    release: "9.2",
    tell: async (stage) => {
      await make(stage, "web", { ...blank, disks });
      await remove(stage);
      await make(stage, "web", { ...blank, disks });
    },
  },
  { name: "an image is downloaded", release: "8.4", tell: download },
  { name: "an image is uploaded by Berth", release: "9.2", tell: upload },
  {
    name: "an image is deleted with its file",
    release: "9.2",
    tell: async (stage) => {
      await download(stage);
      await deleteImage(stage);
    },
  },
  { name: "a volume that nothing declares is destroyed", release: "7.4", tell: destroyVolume },
  {
    name: "a VM that lost its object is deleted by policy",
    release: "8.4",
    tell: destroyByPolicy,
  },
];

async function makeSeeded(stage: SimulatedWorld): Promise<void> {
  const userData = Buffer.from("#cloud-config\nruncmd: [id]\n").toString("base64");
  await stage.world.client.of(secretResource).create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "first-boot" },
    data: { userData },
  });
  const cloudInit = { userData: { secretRef: { name: "first-boot", key: "userData" } } };
  await make(stage, "web", { ...blank, disks: [root, spare], cloudInit });
  const hasSeed = async (): Promise<boolean> => {
    const { items } = await stage.world.client.of(claimKind).list();
    return items.some(({ spec }) => spec.volumes?.some(({ id }) => id.startsWith("berth-seed-")));
  };
  const isTaken = await until(stage.world, async () => !(await hasSeed()), 1_200_000);
  assert.ok(isTaken, "the seed stays");
}

/** A VM that somebody made by hand, with the permission to take it. */
async function adopt(stage: SimulatedWorld): Promise<void> {
  const { world, proxmox } = stage;
  const text =
    "cores: 2\nmemory: 2048\nname: old\nboot: order=scsi0\nagent: 1\nserial0: socket\n" +
    "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nscsi0: local-zfs:vm-500-disk-0,size=10G\n" +
    "smbios1: uuid=00000000-0000-4000-8000-00000000f00d\nsockets: 1\nonboot: 1\n";
  proxmox.cluster.state.guests["500"] = { node: "pve1", text };
  const entry = { namespace: "*", adopt: true, externalId: true, storages: ["*"], networks: ["*"] };
  await configure(world, { allow: [entry] });
  const spec = { adopt: "Only", externalId: "500", machineName: "old" } as const;
  await make(stage, "old", { ...spec, disks: [root], powerState: "Stopped" });
}

/** A volume that nothing declares: a person decides, and it is destroyed. */
async function destroyVolume(stage: SimulatedWorld): Promise<void> {
  const { world, proxmox } = stage;
  await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
  leaveVolume(proxmox, "vm-200-disk-0");
  await phase(stage, "the volume is found and destroyed", async () => {
    const orphan = await waitForOrphan(world, "local-zfs:vm-200-disk-0");
    await decide(world, orphan, { decision: "Destroy" });
    const isReclaimed = async (): Promise<boolean> => {
      return (await orphanOf(world, orphan.spec.externalId))?.status?.reclaimed !== undefined;
    };
    assert.ok(await until(world, isReclaimed), "the volume is not destroyed");
  });
}

/** A VM that lost its object goes by policy, and its Claim with it. */
async function destroyByPolicy(stage: SimulatedWorld): Promise<void> {
  const { world, proxmox } = stage;
  const policy = { policy: "DeleteOwned", graceSeconds: 60, sweepSeconds: 60 };
  await configure(world, { orphans: policy });
  await make(stage, "web", { disks: [root], powerState: "Stopped" });
  for (const [name, externalId] of [
    ["mail", "301"],
    ["db", "302"],
  ] as const) {
    await make(stage, name, { disks: [root], externalId, powerState: "Stopped" });
  }
  await strip(world, "web");
  const isGone = (): boolean => proxmox.cluster.state.guests["300"] === undefined;
  assert.ok(await until(world, isGone, 1_200_000), "the VM is not destroyed");
  const claims = world.client.of(claimKind);
  const isFree = async (): Promise<boolean> => {
    const { items } = await claims.list();
    return !items.some(({ spec }) => spec.externalId === "300" && spec.state === "Bound");
  };
  assert.ok(await until(world, isFree, 1_200_000), "its Claim is not retired");
}

/** What a person asks for, until it is so: no object is written more often than this meanwhile. */
async function phase(
  { world }: SimulatedWorld,
  what: string,
  act: () => Promise<void>,
): Promise<void> {
  const before = world.statusWrites.length;
  await act();
  const written = world.statusWrites.slice(before).filter((path) => !isSwept(path));
  for (const [path, all] of Map.groupBy(written, (one) => one)) {
    assert.ok(all.length <= statusWritesMost, `${all.length} status writes of ${path}: ${what}`);
  }
}

/** A Hypervisor is written by each of its sweeps, for as long as a story waits for them. */
function isSwept(path: string): boolean {
  return path.includes("/hypervisors/");
}

async function make(
  stage: SimulatedWorld,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec>,
): Promise<void> {
  await phase(stage, `${name} is made`, async () => {
    const { client } = stage.world;
    await createVm(client, name, { externalId: "300", placement: { node: "pve1" }, ...spec });
    await comesTo(stage, name, isSettled);
  });
}

async function edit(stage: SimulatedWorld, spec: object): Promise<void> {
  const key = { namespace: "default", name: "web" };
  await phase(stage, "web is edited", async () => {
    await stage.world.client.of(virtualMachineKind).patch(key, { merge: { spec } });
    await comesTo(stage, "web", isSettled);
  });
}

async function remove(stage: SimulatedWorld): Promise<void> {
  const key = { namespace: "default", name: "web" };
  await phase(stage, "web is deleted", async () => {
    await stage.world.client.of(virtualMachineKind).delete(key);
    await comesTo(stage, "web", (vm) => vm === undefined);
  });
}

/** It takes some seconds, and many turns. */
async function download(stage: SimulatedWorld): Promise<void> {
  stage.proxmox.cluster.slowStorageMs = 5_000;
  await phase(stage, "the image is brought", () => bring(stage));
}

/** Berth fetches it and sends it on. */
async function upload(stage: SimulatedWorld): Promise<void> {
  await configure(stage.world, { imageDownload: "ViaBerth" });
  await phase(stage, "the image is brought", () => bring(stage));
}

async function bring({ world }: SimulatedWorld): Promise<void> {
  const http = { url: "https://images.example/small.qcow2", checksum: `sha256:${sha256}` };
  const images = world.client.of(vmImageKind);
  await images.create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: "small" },
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }] },
  });
  const isPresent = async (): Promise<boolean> => {
    const { status } = await images.get({ namespace: "default", name: "small" });
    return status?.copies?.[0]?.state === "Present" && status.operation === undefined;
  };
  assert.ok(await until(world, isPresent), "the image does not come");
}

async function deleteImage(stage: SimulatedWorld): Promise<void> {
  const { world } = stage;
  const images = world.client.of(vmImageKind);
  await phase(stage, "the image is deleted", async () => {
    await images.delete({ namespace: "default", name: "small" });
    const isGone = async (): Promise<boolean> => {
      return (await images.list()).items.every(({ metadata }) => metadata.name !== "small");
    };
    assert.ok(await until(world, isGone), "the image does not go");
  });
}

/** The web of these stories has one file. */
const fetchSmall: NonNullable<ModelOptions["fetch"]> = async () => {
  const sizeBytes = content.length;
  const mimeType = "application/octet-stream";
  return { kind: "file", sizeBytes, sha256, mimeType, virtualBytes: 2 ** 30 };
};

/** The same file for Berth itself, which sends it on in parts. */
function smallWeb(clock: Clock): Web {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    await sleep(clock, 5_000);
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

type Vm = Awaited<ReturnType<typeof getVm>>;

function isSettled(vm: Vm): boolean {
  return isReady(vm) && vm?.status?.operation === undefined;
}

async function comesTo(
  { world }: SimulatedWorld,
  name: string,
  holds: (vm: Vm) => boolean,
): Promise<void> {
  const isSo = await until(world, async () => holds(await getVm(world.client, name)));
  if (!isSo) assert.fail(`${name}: ${JSON.stringify((await getVm(world.client, name))?.status)}`);
}

interface Told {
  /** What was sent, by the VM that it is about, in order. */
  readonly writes: ReadonlyMap<string, readonly string[]>;
  readonly failure: string | undefined;
}

/** How often a Hypervisor without an answer is written in half an hour, and what it says then. */
async function outage(forgets?: () => boolean): Promise<{ writes: number; attempts: number }> {
  let isAway = false;
  const away = { type: "lost", detail: "connect ECONNREFUSED" } as const;
  const stage = await openProxmox("8.4", {
    between: (request, send) => (isAway ? Promise.resolve(away) : send(request)),
  });
  const { world } = stage;
  const incarnation = world.start(forgets === undefined ? {} : { forgets });
  await make(stage, "web", { disks: [root], powerState: "Stopped" });
  isAway = true;
  const before = world.statusWrites.length;
  await until(world, () => false, 1_800_000);
  const hypervisor = await world.client.of(hypervisorKind).get({ name: "model" });
  incarnation.crash();
  const written = world.statusWrites.slice(before).filter((path) => path.includes("hypervisors"));
  return { writes: written.length, attempts: hypervisor.status?.failure?.attempts ?? 0 };
}

async function tell(story: Story, forgets?: () => boolean, clockAheadMs = 0): Promise<Told> {
  const stage = await openProxmox(story.release, { fetch: fetchSmall, clockAheadMs });
  const { world } = stage;
  const web = smallWeb(world.clock);
  const incarnation = world.start({ web, ...(forgets === undefined ? {} : { forgets }) });
  let failure: string | undefined;
  try {
    await story.tell(stage);
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  incarnation.crash();
  return { writes: writesOf(stage.requests), failure };
}

const told = new Map<Story, Told>();

/** By a process that remembers, with clocks that agree. */
async function plainly(story: Story): Promise<Told> {
  const plain = told.get(story) ?? (await tell(story));
  told.set(story, plain);
  return plain;
}

/** Ids and what is made up differ from run to run; what is asked of which VM does not. */
const madeUp = /^(digest|target-digest|target-vmid|description|smbios1|vmgenid|net\d+)$/;

/** A blank volume has the operation in its name. */
const ofOperation = /-berth-[0-9a-f]{12}/g;

function writesOf(requests: readonly PveRequest[]): Map<string, string[]> {
  const writes = new Map<string, string[]>();
  const ids: string[] = [];
  for (const { method, path, params = {} } of requests) {
    if (method === "GET") continue;
    const id = /\/qemu\/(\d+)/.exec(path)?.[1] ?? String(params["vmid"] ?? "none");
    if (!ids.includes(id)) ids.push(id);
    const said = Object.entries(params).map(([key, value]) => {
      const text = String(value).replaceAll(id, "ID").replaceAll(ofOperation, "-berth-OPERATION");
      return madeUp.test(key) ? key : `${key}=${text}`;
    });
    const line = `${method} ${path.replace(id, "ID")} ${said.toSorted().join()}`;
    const target = `VM ${ids.indexOf(id)}`;
    writes.set(target, [...(writes.get(target) ?? []), line]);
  }
  return writes;
}

describe("a process that remembers nothing", () => {
  it("counts how often a hypervisor did not answer, and waits longer each time", async () => {
    const [plain, forgetful] = [await outage(), await outage(() => true)];
    assert.ok(plain.attempts >= 4, JSON.stringify(plain));
    assert.ok(forgetful.attempts >= plain.attempts - 1, JSON.stringify({ plain, forgetful }));
    assert.ok(forgetful.writes <= plain.writes + 2, JSON.stringify({ plain, forgetful }));
  });

  for (const story of stories) {
    it(`${story.name} on ${story.release}, as by one that remembers`, async () => {
      const [plain, forgetful] = [await plainly(story), await tell(story, () => true)];
      assert.equal(plain.failure, undefined);
      assert.deepEqual(forgetful, plain);
    });
  }

  // A second is enough where times are whole seconds; minutes are what nobody has set right.
  const clocks = [-3_000, 120_000, -120_000];
  for (const [index, story] of stories.entries()) {
    const aheadMs = clocks[index % clocks.length] ?? 0;
    const nodes = `the nodes' clocks ${aheadMs / 1000} s ahead`;
    it(`${story.name}, with ${nodes}, as by one that remembers`, async () => {
      const [plain, forgetful] = [await plainly(story), await tell(story, () => true, aheadMs)];
      assert.deepEqual(forgetful, plain);
    });
  }
});
