import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, vmImageKind } from "../api/index.ts";
import type { Claim, VMImage, WrittenVMImage } from "../api/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
const minuteMs = 60_000;
const gibibyte = 1024 ** 3;
const ownName = `berth-sha256-${sha256}.qcow2`;
const keyOf = (name: string) => ({ namespace: "default", name });

type Volume = SimulatedWorld["proxmox"]["cluster"]["state"]["volumes"][string][number];

async function open(fileName?: string): Promise<SimulatedWorld> {
  const stage = await openProxmox("9.2", nodesWeb);
  stage.world.start();
  await declare(stage, "remote", fileName === undefined ? {} : { fileName });
  assert.ok(await until(stage.world, async () => (await readyOf(stage)).status === "True"));
  return stage;
}

async function declare(
  { world }: SimulatedWorld,
  name: string,
  spec: Partial<WrittenVMImage["spec"]> = {},
): Promise<void> {
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: keyOf(name),
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }], ...spec },
  });
}

async function imageOf({ world }: SimulatedWorld, name = "remote"): Promise<VMImage | undefined> {
  const { items } = await world.client.of(vmImageKind).list();
  return items.find(({ metadata }) => metadata.name === name);
}

async function readyOf(stage: SimulatedWorld, name = "remote") {
  const { conditions = [] } = (await imageOf(stage, name))?.status ?? {};
  return conditions.find(({ type }) => type === "Ready") ?? { status: "none", message: "" };
}

async function claimOf({ world }: SimulatedWorld): Promise<Claim["spec"] | undefined> {
  const { items } = await world.client.of(claimKind).list();
  return items.find(({ spec }) => spec.target === "File")?.spec;
}

function fileOf({ proxmox }: SimulatedWorld, fileName: string): Volume | undefined {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  return volumes.find(({ name }) => name.endsWith(`/${fileName}`));
}

/** A person puts another file under that name. */
function replace(
  stage: SimulatedWorld,
  fileName: string,
  other: Partial<Volume> = { sizeBytes: 77 * gibibyte },
): void {
  const file = fileOf(stage, fileName);
  assert.ok(file !== undefined);
  Object.assign(file, { createdMs: stage.world.clock.nowMs(), sha256: "theirs", ...other });
}

const pass = ({ world }: SimulatedWorld, ms: number) => until(world, () => false, ms);

async function remove(stage: SimulatedWorld): Promise<void> {
  await stage.world.client.of(vmImageKind).delete(keyOf("remote"));
  const isGone = await until(stage.world, async () => (await imageOf(stage)) === undefined);
  assert.ok(isGone, JSON.stringify((await imageOf(stage))?.status));
}

/** Berth says that the file is somebody else's, and what a person can do. */
async function demandGivenUp(stage: SimulatedWorld, name: string): Promise<void> {
  const { status, message } = await readyOf(stage);
  assert.equal(status, "False");
  assert.match(message, new RegExp(`${name} on local of pve\\d.*replaced.*kubectl delete claim`));
  const copies = (await imageOf(stage))?.status?.copies;
  assert.partialDeepStrictEqual(copies, [{ state: "Failed", verified: false, brought: false }]);
  const { state, releaseReason = "" } = (await claimOf(stage)) ?? {};
  assert.match(`${state} ${releaseReason}`, /^Released .*replaced/);
}

describe("an image file that somebody replaced", () => {
  for (const fileName of [undefined, "mine.qcow2"]) {
    const name = fileName ?? ownName;
    it(`is not called verified, and is not removed: ${fileName ?? "own name"}`, async () => {
      const stage = await open(fileName);
      await pass(stage, minuteMs);
      replace(stage, name);
      await pass(stage, 20 * minuteMs);
      await demandGivenUp(stage, name);
      await remove(stage);
      assert.equal(fileOf(stage, name)?.sizeBytes, 77 * gibibyte);
    });

    it(`is not removed before it was observed: ${fileName ?? "own name"}`, async () => {
      const stage = await open(fileName);
      await pass(stage, minuteMs);
      replace(stage, name);
      await remove(stage);
      assert.equal(fileOf(stage, name)?.sizeBytes, 77 * gibibyte);
      assert.equal((await claimOf(stage))?.state, "Released");
    });
  }

  it("is noticed by its time alone, where it has the same size", async () => {
    const stage = await open();
    await pass(stage, minuteMs);
    replace(stage, ownName, {});
    await pass(stage, 20 * minuteMs);
    assert.equal((await readyOf(stage)).status, "False");
    await remove(stage);
    assert.ok(fileOf(stage, ownName) !== undefined);
  });

  it("fills no VM, observed or not", async () => {
    for (const waitMs of [0, 20 * minuteMs]) {
      const stage = await open();
      await pass(stage, minuteMs);
      replace(stage, ownName);
      await pass(stage, waitMs);
      stage.requests.length = 0;
      await createVm(stage.world.client, "web", {
        source: { image: { name: "remote" } },
        disks: [{ name: "root", size: "3Gi", storage: "local-zfs" }],
      });
      await pass(stage, 5 * minuteMs);
      const imports = stage.requests.filter(({ method, params }) => {
        return method !== "GET" && JSON.stringify(params ?? {}).includes("import-from");
      });
      assert.deepEqual(imports, []);
      const vm = await getVm(stage.world.client, "web");
      assert.equal(isReady(vm), false);
      assert.match(JSON.stringify(vm?.status?.failure), /replaced/);
    }
  });

  it("is not verified for another image of the same checksum either", async () => {
    const stage = await open();
    await pass(stage, minuteMs);
    replace(stage, ownName);
    await declare(stage, "second");
    await pass(stage, 2 * minuteMs);
    assert.equal((await readyOf(stage, "second")).status, "False");
  });

  it("stays so without the status of its image, and after a restart", async () => {
    const stage = await open();
    await pass(stage, minuteMs);
    replace(stage, ownName);
    await pass(stage, 20 * minuteMs);
    const images = stage.world.client.of(vmImageKind);
    const { status: _lost, ...rest } = await images.get(keyOf("remote"));
    await images.updateStatus(rest);
    await pass(stage, 2 * minuteMs);
    assert.equal((await readyOf(stage)).status, "False");
  });

  it("is brought again once the person has taken it away", async () => {
    const stage = await open();
    await pass(stage, minuteMs);
    replace(stage, ownName);
    await pass(stage, 20 * minuteMs);
    const { volumes } = stage.proxmox.cluster.state;
    for (const list of Object.values(volumes)) {
      const at = list.findIndex(({ name }) => name.endsWith(ownName));
      if (at >= 0) list.splice(at, 1);
    }
    const isBack = await until(stage.world, async () => (await readyOf(stage)).status === "True");
    assert.ok(isBack, JSON.stringify((await imageOf(stage))?.status));
    assert.equal((await claimOf(stage))?.state, "Bound");
    assert.equal(fileOf(stage, ownName)?.sha256, sha256);
  });

  it("is used as it is, unverified, once the person has deleted the Claim", async () => {
    const stage = await open();
    await pass(stage, minuteMs);
    replace(stage, ownName);
    await pass(stage, 20 * minuteMs);
    const claims = stage.world.client.of(claimKind);
    const { items } = await claims.list();
    const name = items.find(({ spec }) => spec.target === "File")?.metadata.name ?? "";
    await claims.delete({ name });
    const isUsed = await until(stage.world, async () => (await readyOf(stage)).status === "True");
    assert.ok(isUsed, JSON.stringify((await imageOf(stage))?.status));
    const [copy] = (await imageOf(stage))?.status?.copies ?? [];
    assert.deepEqual([copy?.verified, copy?.brought], [false, false]);
  });
});

describe("an image file that nobody touched", () => {
  it("stays verified, with the size and the time that its Claim records", async () => {
    const stage = await open();
    await pass(stage, 60 * minuteMs);
    const { size, createdAt } = (await claimOf(stage))?.file ?? {};
    const { sizeBytes, createdMs = 0 } = fileOf(stage, ownName) ?? {};
    assert.equal(size, String(sizeBytes));
    assert.equal(Date.parse(createdAt ?? ""), Math.floor(createdMs / 1_000) * 1_000);
    assert.equal((await readyOf(stage)).status, "True");
    await remove(stage);
    assert.equal(fileOf(stage, ownName), undefined);
  });
});

describe("an image file that somebody puts there before the download", () => {
  it("is used, and is not called Berth's: it stays when the VMImage goes", async () => {
    const stage: SimulatedWorld = await openProxmox("9.2", {
      ...nodesWeb,
      between: async (request, send) => {
        if (request.path.endsWith("/download-url")) putThere(stage, request.path);
        return send(request);
      },
    });
    stage.world.start();
    await declare(stage, "remote");
    assert.ok(await until(stage.world, async () => (await readyOf(stage)).status === "True"));
    const copies = (await imageOf(stage))?.status?.copies;
    assert.partialDeepStrictEqual(copies, [{ state: "Present", verified: false, brought: false }]);
    await remove(stage);
    assert.ok(fileOf(stage, ownName) !== undefined, "the person's file was removed");
  });
});

/** The very file, with the right content, by somebody else's hands. */
function putThere({ proxmox, world }: SimulatedWorld, path: string): void {
  const node = /^\/nodes\/([^/]+)\//.exec(path)?.[1] ?? "";
  const places = Object.entries(proxmox.cluster.state.volumes);
  const [, files] = places.find(([place, [first]]) => {
    return place.startsWith(`${node}:`) && first?.name.startsWith("import/") === true;
  }) ?? [undefined, undefined];
  const [known] = files ?? [];
  assert.ok(files !== undefined && known !== undefined, places.map(([place]) => place).join(" "));
  files.push({ ...known, name: `import/${ownName}`, sha256, createdMs: world.clock.nowMs() });
}
