import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, vmImageKind, type VMImage } from "../api/index.ts";
import { answered } from "../hypervisor/index.ts";
import type { VirtualClock } from "../kernel/virtual-clock.ts";
import type { Web } from "./index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";
import { content, sha256 } from "./testing/small-disk.ts";

const ownName = `berth-sha256-${sha256}.qcow2`;
const url = "https://images.example/debian.qcow2";

/** A web with one file, which comes in so many parts, each a second after the other. */
function webOf(clock: VirtualClock, { address = "203.0.113.7", parts = 4 } = {}): Web {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    const size = Math.ceil(content.length / parts);
    for (let start = 0; start < content.length; start += size) {
      await new Promise<void>((resolve) => void clock.after(1_000, resolve));
      yield content.subarray(start, start + size);
    }
  }
  return {
    resolve: () => Promise.resolve(answered([address])),
    open: () => {
      const file = { sizeBytes: content.length, chunks: chunks(), close: () => undefined };
      return Promise.resolve(answered(file));
    },
  };
}

interface ImageOptions {
  readonly namespace?: string;
  readonly spec?: object;
}

async function declare(
  { world }: SimulatedWorld,
  name: string,
  { namespace = "default", spec = {} }: ImageOptions = {},
): Promise<void> {
  const http = { url, checksum: `sha256:${sha256}` };
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace, name },
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }], ...spec },
  });
}

async function change({ world }: SimulatedWorld, spec: object): Promise<void> {
  await world.client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec } });
}

/** By its name; those of the tests have different ones in all namespaces. */
async function image({ world }: SimulatedWorld, name: string): Promise<VMImage | undefined> {
  const { items } = await world.client.of(vmImageKind).list();
  return items.find(({ metadata }) => metadata.name === name);
}

function files({ proxmox }: SimulatedWorld): string[] {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  return volumes.filter(({ vmid }) => vmid === undefined).map(({ name }) => name);
}

function isThere(stage: SimulatedWorld, fileName: string): boolean {
  return files(stage).some((name) => name.endsWith(fileName));
}

async function comesTo(
  stage: SimulatedWorld,
  name: string,
  holds: (found: VMImage | undefined) => boolean,
): Promise<VMImage | undefined> {
  const { world } = stage;
  const isSo = await until(world, async () => holds(await image(stage, name)));
  const found = await image(stage, name);
  assert.ok(isSo, JSON.stringify([found?.status, files(stage), world.log], undefined, 1));
  return found;
}

function isPresent(found: VMImage | undefined): boolean {
  const { copies = [], operation } = found?.status ?? {};
  return copies.some(({ state }) => state === "Present") && operation === undefined;
}

/** The size of its one copy, whose checksum nobody verified. */
function unverifiedSize(found: VMImage | undefined): string {
  const { conditions = [], copies = [] } = found?.status ?? {};
  const unverified = conditions.find(({ type }) => type === "ChecksumUnverified");
  assert.equal(unverified?.status, "True");
  return copies[0]?.size ?? "";
}

function failureOf(found: VMImage | undefined): string {
  const { category = "", message = "", cause = "" } = found?.status?.failure ?? {};
  return `${category}: ${message} ${cause}`;
}

function writes({ requests }: SimulatedWorld): string[] {
  const sent = requests.filter(({ method }) => method !== "GET");
  return sent.map(({ method, path }) => `${method} ${path.split("/").at(-1)}`);
}

describe("an image that passes through Berth", () => {
  it("is fetched here, uploaded under its checksum, and machines are made from it", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    world.start({ web: webOf(world.clock, { parts: 35 }) });
    await declare(stage, "remote", { spec: { guestOs: { family: "Windows", version: "11" } } });
    world.statusWrites.length = 0;
    const found = await comesTo(stage, "remote", isPresent);
    assert.ok(isThere(stage, ownName), files(stage).join());
    assert.deepEqual(writes(stage), ["POST upload"]);
    assert.deepEqual(
      found?.status?.copies?.map(({ brought, verified, size }) => [brought, verified, size]),
      [[true, true, String(content.length)]],
    );
    // The intent, its progress three times in 35 seconds, its task, and the end.
    const told = world.statusWrites.filter((path) => path.includes("/vmimages/remote"));
    assert.ok(told.length <= 7, told.join("\n"));
    await createVm(world.client, "web", {
      source: { image: { name: "remote" } },
      disks: [{ name: "root", size: "3Gi", storage: "local-zfs" }],
    });
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    const vm = await getVm(world.client, "web");
    assert.ok(isMade, JSON.stringify(vm?.status));
    // What runs in the machine is the image's word, where the machine does not say.
    const text = stage.proxmox.cluster.state.guests[vm?.status?.externalId ?? ""]?.text;
    assert.match(text ?? "", /^ostype: win11$/m);
  });

  it("is begun anew after a crash, whatever the crash left", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    const first = world.start({ web: webOf(world.clock, { parts: 20 }) });
    await declare(stage, "remote");
    await until(world, () => writes(stage).length > 0);
    await until(world, () => false, 5_000);
    first.crash();
    world.start({ web: webOf(world.clock) });
    await comesTo(stage, "remote", isPresent);
    assert.ok(isThere(stage, ownName));
  });

  it("is begun anew where the server's own work on it died, whatever that left", async () => {
    const stage = await openProxmox("9.2");
    const { world, proxmox } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    proxmox.faults.onStep({
      verdict: { kind: "kill" },
      matches: ({ name, steps }) => name.startsWith("imgcopy") && steps === 2,
    });
    world.start({ web: webOf(world.clock) });
    await declare(stage, "remote");
    await comesTo(stage, "remote", isPresent);
    const { volumes } = proxmox.cluster.state;
    const file = Object.values(volumes)
      .flat()
      .find(({ name }) => name.endsWith(ownName));
    assert.equal(file?.sizeBytes, content.length);
    assert.deepEqual(writes(stage), ["POST upload", "POST upload"]);
  });

  it("that is not what it should be is thrown away by the server, and is said so", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    world.start({ web: webOf(world.clock) });
    const http = { url, checksum: `sha256:${"0".repeat(64)}` };
    await declare(stage, "wrong", { spec: { source: { http } } });
    const found = await comesTo(stage, "wrong", (one) => one?.status?.failure !== undefined);
    assert.match(failureOf(found), /checksum/i);
    assert.deepEqual(
      found?.status?.copies?.map(({ state, verified }) => [state, verified]),
      [["Failed", false]],
    );
  });

  it("of another size than was declared is not brought", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    world.start({ web: webOf(world.clock) });
    await declare(stage, "large", { spec: { size: "12345" } });
    const found = await comesTo(stage, "large", (one) => one?.status?.failure !== undefined);
    assert.match(failureOf(found), /12345/);
    assert.deepEqual(writes(stage), []);
  });
});

describe("where an image comes from", () => {
  it("is no private address, unless its network is allowed", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    world.start({ web: webOf(world.clock, { address: "10.1.2.3" }) });
    await declare(stage, "inside");
    const found = await comesTo(stage, "inside", (one) => one?.status?.failure !== undefined);
    assert.match(failureOf(found), /^PermissionDenied: .*10\.1\.2\.3/);
    assert.deepEqual(writes(stage), []);
    await change(stage, { privateImageNetworks: ["10.1.0.0/16"] });
    await until(world, () => writes(stage).includes("POST download-url"));
    assert.deepEqual([...new Set(writes(stage))], ["POST download-url"]);
  });

  it("is named with the ways that remain where a server has no place for it", async () => {
    const stage = await openProxmox("7.4");
    const { world } = stage;
    world.start({ web: webOf(world.clock) });
    await declare(stage, "remote", { spec: { prefetch: [] } });
    const disks = [{ name: "root", size: "3Gi", storage: "local-zfs" }];
    await createVm(world.client, "web", { source: { image: { name: "remote" } }, disks });
    await until(world, async () => {
      const { failure } = (await getVm(world.client, "web"))?.status ?? {};
      return failure?.remedy?.includes("spec.source.clone") === true;
    });
    const { failure } = (await getVm(world.client, "web"))?.status ?? {};
    assert.match(failure?.message ?? "", /takes image files/);
    assert.match(failure?.remedy ?? "", /spec\.source\.clone.*spec\.source\.importedDisk/);
    assert.deepEqual(writes(stage), []);
  });
});

describe("the file of an image", () => {
  it("goes when no image of any namespace names it any more, and not before", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    world.start({ web: webOf(world.clock) });
    await declare(stage, "one");
    await declare(stage, "two", { namespace: "berth-system" });
    await comesTo(stage, "one", isPresent);
    await comesTo(stage, "two", isPresent);
    const images = world.client.of(vmImageKind);
    await images.delete({ namespace: "default", name: "one" });
    await comesTo(stage, "one", (found) => found === undefined);
    assert.ok(isThere(stage, ownName));
    await images.delete({ namespace: "berth-system", name: "two" });
    await comesTo(stage, "two", (found) => found === undefined);
    assert.equal(isThere(stage, ownName), false);
  });

  it("stays if Berth did not bring it, and counts by its name and size", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    world.start();
    const fileName = "debian-12-generic-amd64.qcow2";
    await declare(stage, "known", { spec: { fileName } });
    const size = unverifiedSize(await comesTo(stage, "known", isPresent));
    await declare(stage, "same", { spec: { fileName, size } });
    await comesTo(stage, "same", isPresent);
    await declare(stage, "other", { spec: { fileName, size: "99" } });
    const other = await comesTo(stage, "other", (one) => one?.status?.failure !== undefined);
    assert.match(failureOf(other), /not the 99/);
    for (const name of ["known", "same", "other"]) {
      await world.client.of(vmImageKind).delete({ namespace: "default", name });
      await comesTo(stage, name, (one) => one === undefined);
    }
    assert.ok(isThere(stage, fileName));
    assert.deepEqual(writes(stage), []);
  });

  it("of an image that names another one now goes too", async () => {
    const stage = await openProxmox("9.2");
    const { world } = stage;
    await change(stage, { imageDownload: "ViaBerth" });
    world.start({ web: webOf(world.clock) });
    await declare(stage, "one");
    await comesTo(stage, "one", isPresent);
    const merge = { spec: { fileName: "mine.qcow2" } };
    await world.client.of(vmImageKind).patch({ namespace: "default", name: "one" }, { merge });
    await until(world, () => isThere(stage, "mine.qcow2") && !isThere(stage, ownName));
    assert.deepEqual([isThere(stage, "mine.qcow2"), isThere(stage, ownName)], [true, false]);
  });
});
