import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../api/builtin/index.ts";
import { hypervisorKind, virtualMachineKind, vmImageKind, type VMImage } from "../api/index.ts";
import type { PveReply } from "../drivers/proxmox/index.ts";
import { answered } from "../hypervisor/index.ts";
import { forgetLease, type Web } from "./index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { content, sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const windowMs = 60_000;
const at = { namespace: "default", name: "remote" };
const lost: PveReply = { type: "lost", detail: "no reply" };

/** What arrived of each upload, and when it was sent. */
interface Uploads {
  readonly sentMs: number[];
  arrived: number;
}

interface Losing extends SimulatedWorld {
  readonly uploads: Uploads;
}

/** The reply to the first upload is lost: it is begun, or its request never arrives. */
async function openLosing(isBegun: boolean): Promise<Losing> {
  const uploads: Uploads = { sentMs: [], arrived: 0 };
  const time = { nowMs: (): number => 0 };
  const stage = await openProxmox("9.2", {
    between: async (request, send) => {
      if (!request.path.endsWith("/upload")) return send(request);
      uploads.sentMs.push(time.nowMs());
      const isFirst = uploads.sentMs.length === 1;
      if (isFirst && !isBegun) return lost;
      uploads.arrived += 1;
      const reply = await send(request);
      return isFirst ? lost : reply;
    },
  });
  time.nowMs = () => stage.world.clock.monotonicMs();
  return { ...stage, uploads };
}

/** A web with one file, which takes its time. */
function webOf(pass: () => Promise<unknown> = () => Promise.resolve()): Web {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    await pass();
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

/** Berth, which may be killed as soon as the upload was sent. */
async function run({ world, uploads }: Losing, isRestarted: boolean): Promise<void> {
  const first = world.start({ web: webOf() });
  if (!isRestarted) return;
  assert.ok(await until(world, () => uploads.sentMs.length > 0));
  first.crash();
  await forgetLease(world.client);
  world.start({ web: webOf() });
}

function assertPaced({ uploads }: Losing, isBegun: boolean): void {
  assert.equal(uploads.arrived, 1, "it was brought once");
  const [firstMs = 0, secondMs = Infinity] = uploads.sentMs;
  assert.ok(secondMs - firstMs >= windowMs, "not repeated while it may still take effect");
  assert.equal(uploads.sentMs.length, isBegun ? 1 : 2);
}

function filesOf({ proxmox }: SimulatedWorld, part: string): string[] {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  return volumes.map(({ name }) => name).filter((name) => name.includes(part));
}

async function declareImage({ world }: Losing): Promise<void> {
  const merge = { spec: { imageDownload: "ViaBerth" } };
  await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }] },
  });
}

async function imageOf({ world }: Losing): Promise<VMImage | undefined> {
  const { items } = await world.client.of(vmImageKind).list();
  return items.find(({ metadata }) => metadata.name === at.name);
}

const cases = [
  { isBegun: true, isRestarted: false },
  { isBegun: true, isRestarted: true },
  { isBegun: false, isRestarted: false },
  { isBegun: false, isRestarted: true },
];

function title({ isBegun, isRestarted }: (typeof cases)[number]): string {
  const how = isBegun ? "that was begun" : "that never arrived";
  return `${how}${isRestarted ? ", with a restart in between" : ""}`;
}

describe("an upload of an image whose reply is lost", () => {
  for (const one of cases) {
    it(`${title(one)}, brings the file once and leaves nothing`, async () => {
      const stage = await openLosing(one.isBegun);
      const { world } = stage;
      await declareImage(stage);
      await run(stage, one.isRestarted);
      const isThere = await until(world, async () => {
        return (await imageOf(stage))?.status?.copies?.[0]?.state === "Present";
      });
      assert.ok(isThere, JSON.stringify((await imageOf(stage))?.status));
      assertPaced(stage, one.isBegun);
      assert.equal(filesOf(stage, sha256).length, 1);
      await world.client.of(vmImageKind).delete(at);
      assert.ok(await until(world, async () => (await imageOf(stage)) === undefined));
      assert.deepEqual(filesOf(stage, sha256), []);
      assert.deepEqual(await listClaims(world.client), []);
    });
  }
});

describe("an upload of an image whose reply is lost and whose copy takes long", () => {
  for (const isRestarted of [false, true]) {
    const how = isRestarted ? ", with a restart in between" : "";
    it(`is found by its file name and not sent again${how}`, async () => {
      const stage = await openLosing(true);
      const { world, proxmox } = stage;
      proxmox.cluster.slowStorageMs = 5 * windowMs;
      await declareImage(stage);
      await run(stage, isRestarted);
      const isThere = await until(world, async () => {
        return (await imageOf(stage))?.status?.copies?.[0]?.state === "Present";
      });
      assert.ok(isThere, JSON.stringify((await imageOf(stage))?.status));
      assert.equal(stage.uploads.sentMs.length, 1);
    });
  }
});

/** Everything was sent, its reply is lost, and the server begins some seconds later. */
async function openLate(): Promise<Losing> {
  const uploads: Uploads = { sentMs: [], arrived: 0 };
  const clock: { after?: (ms: number, then: () => void) => unknown; nowMs?: () => number } = {};
  const stage = await openProxmox("9.2", {
    between: async (request, send) => {
      const { file } = request;
      if (file === undefined || !("chunks" in file)) return send(request);
      uploads.sentMs.push(clock.nowMs?.() ?? 0);
      const parts: Uint8Array[] = [];
      for await (const part of file.chunks) parts.push(part);
      const { mayWrite: _mayWrite, ...late } = request;
      const whole = { ...late, file: { name: file.name, content: Buffer.concat(parts) } };
      clock.after?.(5_000, () => void send(whole));
      return lost;
    },
  });
  clock.after = (ms, then) => stage.world.clock.after(ms, then);
  clock.nowMs = () => stage.world.clock.monotonicMs();
  return { ...stage, uploads };
}

describe("an upload that took longer than its window", () => {
  it("is not sent again at once where its reply is lost", async () => {
    const stage = await openLate();
    const { world } = stage;
    await declareImage(stage);
    world.start({
      web: webOf(
        () => new Promise((resolve) => void world.clock.after(2 * windowMs, () => resolve(0))),
      ),
    });
    const isThere = await until(world, async () => {
      return (await imageOf(stage))?.status?.copies?.[0]?.state === "Present";
    });
    assert.ok(isThere, JSON.stringify((await imageOf(stage))?.status));
    assert.equal(stage.uploads.sentMs.length, 1);
  });
});

async function declareVm({ world }: Losing): Promise<void> {
  const userData = Buffer.from("#cloud-config\nruncmd: [id]\n").toString("base64");
  const metadata = { namespace: "default", name: "first-boot" };
  const secret = { apiVersion: "v1", kind: "Secret", metadata, data: { userData } };
  await world.client.of(secretResource).create(secret);
  await createVm(world.client, "web", {
    disks: [{ name: "root", size: "3Gi", storage: "local-zfs" }],
    cloudInit: { userData: { secretRef: { name: "first-boot", key: "userData" } } },
  });
}

describe("an upload of a seed ISO whose reply is lost", () => {
  for (const one of cases) {
    it(`${title(one)}, brings the file once and leaves nothing`, async () => {
      const stage = await openLosing(one.isBegun);
      const { world } = stage;
      await declareVm(stage);
      await run(stage, one.isRestarted);
      const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
      assert.ok(isThere, JSON.stringify((await getVm(world.client, "web"))?.status));
      assertPaced(stage, one.isBegun);
      await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
      const isGone = await until(world, async () => !(await getVm(world.client, "web")));
      assert.ok(isGone);
      assert.deepEqual(filesOf(stage, "berth-seed-"), []);
    });
  }
});
