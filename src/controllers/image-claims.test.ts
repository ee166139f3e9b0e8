import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  claimKind,
  hypervisorKind,
  orphanKind,
  virtualMachineKind,
  vmImageKind,
} from "../api/index.ts";
import type { Claim, VMImage, WrittenVMImage } from "../api/index.ts";
import { ApiError } from "../kernel/status.ts";
import { forgetLease } from "./index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, until } from "./testing/world.ts";

const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
const minuteMs = 60_000;

const keyOf = (name: string) => ({ namespace: "default", name });

async function open(more: Partial<StageOptions> = {}): Promise<SimulatedWorld> {
  const stage = await openProxmox("9.2", { ...nodesWeb, ...more });
  stage.world.start();
  return stage;
}

/** Downloads take minutes there. */
async function openSlow(): Promise<SimulatedWorld> {
  const stage = await open();
  stage.proxmox.cluster.slowStorageMs = 5 * minuteMs;
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

async function imageOf({ world }: SimulatedWorld, name: string): Promise<VMImage | undefined> {
  const { items } = await world.client.of(vmImageKind).list();
  return items.find(({ metadata }) => metadata.name === name);
}

async function isReady(stage: SimulatedWorld, name: string): Promise<boolean> {
  const { conditions = [] } = (await imageOf(stage, name))?.status ?? {};
  return conditions.find(({ type }) => type === "Ready")?.status === "True";
}

async function ready(stage: SimulatedWorld, name: string): Promise<void> {
  const isThere = await until(stage.world, () => isReady(stage, name));
  assert.ok(isThere, JSON.stringify((await imageOf(stage, name))?.status));
}

async function gone(stage: SimulatedWorld, name: string): Promise<void> {
  await stage.world.client.of(vmImageKind).delete(keyOf(name));
  const isGone = await until(
    stage.world,
    async () => (await imageOf(stage, name)) === undefined,
    10 * minuteMs,
  );
  assert.ok(isGone, JSON.stringify((await imageOf(stage, name))?.status));
}

/** Somebody, or a restored export, takes the whole status away. */
async function loseStatus({ world }: SimulatedWorld, name: string, times = 5): Promise<void> {
  const images = world.client.of(vmImageKind);
  const { status: _lost, ...rest } = await images.get(keyOf(name));
  try {
    await images.updateStatus(rest);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409 || times === 0) throw error;
    await loseStatus({ world } as SimulatedWorld, name, times - 1);
  }
}

function downloads({ requests }: SimulatedWorld): number {
  return requests.filter(({ method, path }) => {
    return method === "POST" && path.endsWith("/download-url");
  }).length;
}

function filesOf({ proxmox }: SimulatedWorld): string[] {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  const names = volumes.filter(({ vmid }) => vmid === undefined).map(({ name }) => name);
  return names.filter((name) => !name.startsWith("import/debian"));
}

async function claims({ world }: SimulatedWorld): Promise<Claim[]> {
  const { items } = await world.client.of(claimKind).list();
  return items.filter(({ spec }) => spec.target === "File");
}

async function states(stage: SimulatedWorld): Promise<string[]> {
  return (await claims(stage)).map(({ spec }) => `${spec.owner.name} ${spec.state}`);
}

/** A person's file, under the name that an image means. */
function leaveFile({ proxmox }: SimulatedWorld, fileName: string): void {
  const { volumes } = proxmox.cluster.state;
  const debian = "import/debian-12-generic-amd64.qcow2";
  for (const [place, there] of Object.entries(volumes)) {
    const like = there.find(({ name }) => name === debian);
    const name = `import/${fileName}`;
    if (like !== undefined) volumes[place] = [...there, { ...like, name }];
  }
}

describe("the Claim of an image file", () => {
  it("is Reserved before the download, Bound with the file, and goes with it", async () => {
    const seen: string[] = [];
    const stage: SimulatedWorld = await open({
      between: async (request, send) => {
        if (request.path.endsWith("/download-url")) seen.push(...(await states(stage)));
        return send(request);
      },
    });
    await declare(stage, "remote", { fileName: "mine.qcow2" });
    await ready(stage, "remote");
    assert.deepEqual(seen, ["remote Reserved"]);
    const [claim] = await claims(stage);
    assert.equal(claim?.spec.state, "Bound");
    assert.equal(claim?.spec.file?.name, "mine.qcow2");
    assert.equal(claim?.spec.owner.uid, (await imageOf(stage, "remote"))?.metadata.uid);
    await gone(stage, "remote");
    assert.deepEqual([await states(stage), filesOf(stage)], [[], []]);
  });

  it("keeps the Hypervisor until the file is removed from it", async () => {
    const stage = await open();
    const { client } = stage.world;
    await declare(stage, "remote");
    await ready(stage, "remote");
    await client.of(hypervisorKind).delete({ name: "model" });
    const isGone = await until(stage.world, async () => {
      const { items } = await client.of(hypervisorKind).list();
      if (items.length > 0) return false;
      return true;
    });
    assert.ok(isGone, JSON.stringify((await client.of(hypervisorKind).list()).items[0]?.status));
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });
});

describe("an image that loses its status", () => {
  it("in the middle of a download does not begin another", async () => {
    const stage = await openSlow();
    await declare(stage, "remote", { fileName: "mine.qcow2" });
    await until(stage.world, () => downloads(stage) > 0);
    await until(stage.world, () => false, 2_000);
    const operation = async () => (await imageOf(stage, "remote"))?.status?.copies?.[0]?.operation;
    const { id, key } = (await operation()) ?? {};
    await loseStatus(stage, "remote");
    const isFound = await until(stage.world, async () => (await operation())?.id === id);
    // By its key it is known to be the same, if it fails and is to be tried again.
    assert.ok(isFound && key !== undefined && (await operation())?.key === key);
    await ready(stage, "remote");
    assert.equal(downloads(stage), 1);
    assert.deepEqual(await states(stage), ["remote Bound"]);
    await gone(stage, "remote");
    assert.deepEqual(filesOf(stage), []);
  });

  it("still removes the file that it brought under a name that a person chose", async () => {
    const stage = await open();
    await declare(stage, "remote", { fileName: "mine.qcow2" });
    await ready(stage, "remote");
    await loseStatus(stage, "remote");
    await ready(stage, "remote");
    const copies = (await imageOf(stage, "remote"))?.status?.copies;
    assert.deepEqual(
      copies?.map(({ brought, verified }) => [brought, verified]),
      [[true, true]],
    );
    await gone(stage, "remote");
    assert.deepEqual([downloads(stage), filesOf(stage)], [1, []]);
  });

  it("while it is deleted removes the file all the same", async () => {
    const stage = await open();
    await declare(stage, "remote", { fileName: "mine.qcow2" });
    await ready(stage, "remote");
    await stage.world.client.of(vmImageKind).delete(keyOf("remote"));
    await loseStatus(stage, "remote");
    const isGone = await until(
      stage.world,
      async () => (await imageOf(stage, "remote")) === undefined,
    );
    assert.ok(isGone);
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });
});

describe("a file that nobody needs any more", () => {
  it("comes to its end if it was on its way, also when the status is lost", async () => {
    const stage = await openSlow();
    const { client } = stage.world;
    await declare(stage, "remote", { prefetch: [] });
    await createVm(client, "web", { source: { image: { name: "remote" } } });
    assert.ok(await until(stage.world, () => downloads(stage) > 0));
    await client.of(virtualMachineKind).delete(keyOf("web"));
    assert.ok(await until(stage.world, async () => (await getVm(client, "web")) === undefined));
    await loseStatus(stage, "remote");
    await ready(stage, "remote");
    assert.deepEqual([downloads(stage), await states(stage)], [1, ["remote Bound"]]);
    await loseStatus(stage, "remote");
    await ready(stage, "remote");
    assert.equal((await imageOf(stage, "remote"))?.status?.copies?.[0]?.state, "Present");
    await gone(stage, "remote");
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });
});

describe("an image that is deleted while a VM refers to it", () => {
  it("says which VM holds it, and goes after that", async () => {
    const stage = await open();
    const { client } = stage.world;
    await declare(stage, "remote");
    await createVm(client, "web", { source: { image: { name: "remote" } } });
    await ready(stage, "remote");
    await client.of(vmImageKind).delete(keyOf("remote"));
    await until(stage.world, () => false, minuteMs);
    const { conditions = [] } = (await imageOf(stage, "remote"))?.status ?? {};
    const inUse = conditions.find(({ type }) => type === "InUse");
    assert.deepEqual([inUse?.status, inUse?.reason], ["True", "VirtualMachinesRemain"]);
    assert.match(inUse?.message ?? "", /default\/web/);
    await client.of(virtualMachineKind).delete(keyOf("web"));
    const isGone = await until(
      stage.world,
      async () => (await imageOf(stage, "remote")) === undefined,
      10 * minuteMs,
    );
    assert.ok(isGone, JSON.stringify((await imageOf(stage, "remote"))?.status));
  });
});

describe("two images that mean one file", () => {
  it("bring it once, and it goes with the last of them", async () => {
    const stage = await openSlow();
    await declare(stage, "first", { fileName: "mine.qcow2" });
    await declare(stage, "second", { fileName: "mine.qcow2" });
    await ready(stage, "first");
    await ready(stage, "second");
    assert.equal(downloads(stage), 1);
    assert.equal((await claims(stage)).length, 1);
    const owner = (await claims(stage))[0]?.spec.owner.name ?? "";
    const other = owner === "first" ? "second" : "first";
    await gone(stage, owner);
    assert.deepEqual(await states(stage), [`${other} Bound`]);
    assert.equal(filesOf(stage).length, 1);
    await gone(stage, other);
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });
});

/** The replies to downloads are lost: the request arrives, or does not. */
function loses(isLost: () => boolean): NonNullable<StageOptions["between"]> {
  return async (request, send) => {
    if (!request.path.endsWith("/download-url")) return send(request);
    if (!isLost()) await send(request);
    return { type: "lost", detail: "reset" };
  };
}

describe("a download whose reply is lost", () => {
  for (const isRestarted of [false, true]) {
    const how = isRestarted ? ", with a restart in between" : "";
    it(`is known by its task: the file is verified, and goes with the image${how}`, async () => {
      const stage = await openProxmox("9.2", { ...nodesWeb, between: loses(() => false) });
      const first = stage.world.start();
      await declare(stage, "remote");
      if (isRestarted) {
        assert.ok(await until(stage.world, () => filesOf(stage).length > 0));
        first.crash();
        await forgetLease(stage.world.client);
        stage.world.start();
      }
      await ready(stage, "remote");
      const { copies = [] } = (await imageOf(stage, "remote"))?.status ?? {};
      assert.deepEqual(
        copies.map(({ brought, verified }) => [brought, verified]),
        [[true, true]],
      );
      assert.deepEqual([downloads(stage), await states(stage)], [1, ["remote Bound"]]);
      await gone(stage, "remote");
      assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
    });
  }
});

describe("a download that the hypervisor refuses", () => {
  it("leaves no Claim, and its copy does not name one", async () => {
    const denied = { type: "answered", status: 403, reason: "Permission check failed", body: "" };
    const stage = await open({
      between: async (request, send) => {
        return request.path.endsWith("/download-url") ? (denied as never) : send(request);
      },
    });
    await declare(stage, "remote");
    const isTold = await until(
      stage.world,
      async () => (await imageOf(stage, "remote"))?.status?.failure !== undefined,
    );
    await until(stage.world, () => false, 5_000);
    const { copies = [] } = (await imageOf(stage, "remote"))?.status ?? {};
    assert.ok(isTold);
    assert.deepEqual(await states(stage), []);
    assert.deepEqual(
      copies.map(({ state, brought, claim }) => [state, brought, claim]),
      [["Failed", false, undefined]],
    );
  });
});

describe("a file that was there before", () => {
  it("is used, never claimed and never removed, whatever its name", async () => {
    const stage = await open();
    const name = `berth-sha256-${sha256}.qcow2`;
    leaveFile(stage, name);
    const before = filesOf(stage);
    await declare(stage, "remote");
    await ready(stage, "remote");
    assert.deepEqual([downloads(stage), await states(stage)], [0, []]);
    await gone(stage, "remote");
    assert.deepEqual(filesOf(stage), before);
  });

  it("is not called brought where the request for it never arrived, whatever its name", async () => {
    const stage = await open({ between: loses(() => true) });
    await declare(stage, "remote");
    assert.ok(await until(stage.world, async () => (await claims(stage)).length > 0));
    leaveFile(stage, `berth-sha256-${sha256}.qcow2`);
    const before = filesOf(stage);
    await ready(stage, "remote");
    const { copies = [], conditions = [] } = (await imageOf(stage, "remote"))?.status ?? {};
    assert.deepEqual(
      copies.map(({ state, brought, verified, claim }) => [state, brought, verified, claim]),
      [["Present", false, false, undefined]],
    );
    assert.ok(conditions.some(({ type }) => type === "ChecksumUnverified"));
    assert.deepEqual(await states(stage), ["remote Released"]);
    await gone(stage, "remote");
    assert.deepEqual(filesOf(stage), before);
  });

  it("is not removed where a download under its name had failed before", async () => {
    const stage = await open();
    const wrong = { ...http, checksum: `sha256:${"0".repeat(64)}` };
    await declare(stage, "remote", { source: { http: wrong }, fileName: "mine.qcow2" });
    await until(
      stage.world,
      async () => (await imageOf(stage, "remote"))?.status?.failure !== undefined,
    );
    leaveFile(stage, "mine.qcow2");
    const before = filesOf(stage);
    await gone(stage, "remote");
    assert.deepEqual(filesOf(stage), before);
    assert.deepEqual(await states(stage), []);
  });
});

describe("a file whose image is gone without it", () => {
  async function strip({ world }: SimulatedWorld, name: string): Promise<void> {
    const images = world.client.of(vmImageKind);
    await images.patch(keyOf(name), { merge: { metadata: { finalizers: null } } });
    await images.delete(keyOf(name));
  }

  it("passes to another image that names it, and goes with that one", async () => {
    const stage = await open();
    await declare(stage, "first", { fileName: "mine.qcow2" });
    await ready(stage, "first");
    await declare(stage, "second", { fileName: "mine.qcow2" });
    await ready(stage, "second");
    await strip(stage, "first");
    const isGiven = await until(
      stage.world,
      async () => (await states(stage)).includes("second Bound"),
      30 * minuteMs,
    );
    assert.ok(isGiven, (await states(stage)).join());
    await gone(stage, "second");
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });

  it("passes to an image of the same name that was created again", async () => {
    const stage = await open();
    await declare(stage, "remote");
    await ready(stage, "remote");
    await strip(stage, "remote");
    await declare(stage, "remote");
    await ready(stage, "remote");
    assert.deepEqual([downloads(stage), await states(stage)], [1, ["remote Bound"]]);
    await gone(stage, "remote");
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });

  it("is reported as an Orphan of ours, and its Claim goes with it", async () => {
    const stage = await open();
    const orphans = stage.world.client.of(orphanKind);
    await declare(stage, "remote");
    await ready(stage, "remote");
    await strip(stage, "remote");
    const isTold = await until(
      stage.world,
      async () => (await orphans.list()).items[0]?.status?.ownership === "Ours",
      6 * 60 * minuteMs,
    );
    const [orphan] = (await orphans.list()).items;
    assert.ok(isTold, JSON.stringify(orphan));
    const { metadata, spec } = orphan ?? { metadata: {}, spec: { externalId: "" } };
    const decided = { decision: "Destroy", confirm: spec.externalId } as const;
    await orphans.patch({ name: metadata.name ?? "" }, { merge: { spec: decided } });
    const isGone = await until(
      stage.world,
      async () => filesOf(stage).length + (await states(stage)).length === 0,
      60 * minuteMs,
    );
    assert.ok(isGone, JSON.stringify([filesOf(stage), (await orphans.list()).items[0]?.status]));
  });
});

describe("an installation whose release kept in the status alone what it brought", () => {
  it("has the Claims after the upgrade, and no file is touched", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    const { client } = stage.world;
    const before = stage.world.start();
    await declare(stage, "remote", { fileName: "mine.qcow2" });
    await ready(stage, "remote");
    await before.stop();
    const [name = ""] = (await claims(stage)).map(({ metadata }) => metadata.name);
    await client.of(claimKind).delete({ name });
    await forgetClaims(stage, "remote");
    const sent = writes(stage);
    stage.world.start();
    await until(stage.world, () => false, 5 * minuteMs);
    assert.deepEqual(await states(stage), ["remote Bound"]);
    assert.ok((await claims(stage)).every(({ metadata }) => metadata.name === name));
    assert.equal(writes(stage), sent);
    assert.match(JSON.stringify(await imageOf(stage, "remote")), /"brought":true/);
    await gone(stage, "remote");
    assert.deepEqual([filesOf(stage), await states(stage)], [[], []]);
  });
});

/** The status as the release before wrote it. */
async function forgetClaims({ world }: SimulatedWorld, name: string): Promise<void> {
  const images = world.client.of(vmImageKind);
  const image = await images.get(keyOf(name));
  const copies = image.status?.copies?.map(({ claim: _claim, ...copy }) => copy) ?? [];
  await images.updateStatus({ ...image, status: { ...image.status, copies } });
}

/** What was asked of the storages. */
function writes({ requests }: SimulatedWorld): number {
  return requests.filter(({ method, path }) => method !== "GET" && /storage/.test(path)).length;
}

describe("a file whose content is not what an image asks for", () => {
  const other = { url: "https://images.example/else.qcow2", checksum: `sha256:${"a".repeat(64)}` };
  const fileName = "shared-name.qcow2";

  it("is never called verified, also when the image that brought it is deleted", async () => {
    const stage = await open();
    await declare(stage, "first", { fileName });
    await ready(stage, "first");
    await declare(stage, "second", { fileName, source: { http: other } });
    await until(stage.world, () => false, minuteMs);
    await gone(stage, "first");
    await until(stage.world, () => false, 10 * minuteMs);
    assert.equal(await isReady(stage, "second"), false);
    const { copies = [] } = (await imageOf(stage, "second"))?.status ?? {};
    assert.ok(
      copies.every(({ verified }) => !verified),
      JSON.stringify(copies),
    );
  });

  it("is removed, and not called verified, when the checksum of its own image is edited", async () => {
    const stage = await open();
    await declare(stage, "mine", { fileName });
    await ready(stage, "mine");
    const images = stage.world.client.of(vmImageKind);
    await images.patch(keyOf("mine"), { merge: { spec: { source: { http: other } } } });
    await until(stage.world, () => false, 5 * minuteMs);
    assert.equal(await isReady(stage, "mine"), false);
    assert.deepEqual(filesOf(stage), []);
  });
});
