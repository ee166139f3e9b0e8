import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind, vmImageKind, type VMImage } from "../api/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
const minuteMs = 60_000;
const at = { namespace: "default", name: "remote" };
const disks = [{ name: "root", size: "3Gi", storage: "local-zfs" }];

const answers = {
  "no right": { status: 403, reason: "Permission check failed" },
  "no space": { status: 500, reason: "not enough free space: 1000 > 0" },
  "a lock": { status: 500, reason: "can't lock file '/var/lock/pve-manager/x' - got timeout" },
  "no answer": { status: 596, reason: "Connection timed out" },
} as const;

/** pve1 does not download anything; the storage of its files can be listed. */
function refusing(answer: { status: number; reason: string }): StageOptions["between"] {
  return async (request, send) => {
    const isIt = /^\/nodes\/pve1\/.*\/download-url$/.test(request.path);
    return isIt ? ({ type: "answered", ...answer, body: "" } as never) : send(request);
  };
}

/** pve1 does not list the storage of its files. */
const unlisted: StageOptions["between"] = async (request, send) => {
  const isIt = /^\/nodes\/pve1\/storage\/local\/content$/.test(request.path);
  const answer = { type: "answered", status: 596, reason: "Connection timed out", body: "" };
  return isIt ? (answer as never) : send(request);
};

async function open(between: StageOptions["between"]): Promise<SimulatedWorld> {
  const stage = await openProxmox("9.2", { ...nodesWeb, ...(between && { between }) });
  stage.world.start();
  await stage.world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http } },
  });
  const source = { image: { name: "remote" } };
  for (const [name, node] of [
    ["web1", "pve1"],
    ["web2", "pve2"],
  ] as const) {
    await createVm(stage.world.client, name, { source, disks, placement: { node } });
  }
  return stage;
}

function imageOf({ world }: SimulatedWorld): Promise<VMImage> {
  return world.client.of(vmImageKind).get(at);
}

function copyOn({ status }: VMImage, node: string) {
  return status?.copies?.find((copy) => copy.node === node);
}

function messageOf({ status }: VMImage): string {
  return status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";
}

function writesOf({ world }: SimulatedWorld): number {
  return world.statusWrites.filter((path) => path.includes("/vmimages/remote")).length;
}

describe("an image that one place cannot take", () => {
  for (const [why, answer] of Object.entries(answers)) {
    it(`comes to the others all the same: ${why}`, async () => {
      const stage = await open(refusing(answer));
      const { world } = stage;
      const blamed: string[] = [];
      const isMade = await until(world, async () => {
        const vm = await getVm(world.client, "web2");
        blamed.push(JSON.stringify(vm?.status ?? {}));
        return isReady(vm);
      });
      assert.ok(isMade, JSON.stringify([await getVm(world.client, "web2"), await imageOf(stage)]));
      assert.deepEqual(
        blamed.filter((text) => text.includes("pve1")),
        [],
      );
      assert.equal(copyOn(await imageOf(stage), "pve2")?.state, "Present");
    });
  }

  it("comes to the others where a storage cannot be listed, and is not asked all the time", async () => {
    const stage = await open(unlisted);
    const { world } = stage;
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web2")));
    assert.ok(isMade, JSON.stringify(await imageOf(stage)));
    const asked = writesOf(stage);
    assert.ok(asked <= 12, `${asked} status writes`);
  });

  it("tells each VM about its own place, and names the place in its status", async () => {
    const stage = await open(refusing(answers["no space"]));
    const { world } = stage;
    await until(world, async () => isReady(await getVm(world.client, "web2")));
    await until(world, () => false, 5 * minuteMs);
    const vm = await getVm(world.client, "web1");
    assert.match(vm?.status?.failure?.message ?? "", /local on pve1.*space/);
    const image = await imageOf(stage);
    assert.match(messageOf(image), /The copy at local on pve1 of model has failed: .*space/);
    assert.equal(copyOn(image, "pve1")?.failure?.step, "Download");
  });

  it("is told so also while another place is slow", async () => {
    const stage = await open(refusing(answers["no right"]));
    const { world, proxmox } = stage;
    proxmox.cluster.slowStorageMs = 3 * minuteMs;
    await until(world, () => false, 2 * minuteMs);
    const { message } = (await getVm(world.client, "web1"))?.status?.failure ?? {};
    assert.match(message ?? "", /local on pve1/);
    assert.equal(copyOn(await imageOf(stage), "pve2")?.state, "Downloading");
    assert.ok(writesOf(stage) <= 12, `${writesOf(stage)} status writes`);
  });
});

describe("an image that two Hypervisors need", () => {
  it("comes to one while the other cannot be asked, and says which cannot", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    const { world } = stage;
    world.start();
    await world.client.of(vmImageKind).create({
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMImage",
      metadata: at,
      spec: { source: { http }, prefetch: [{ hypervisor: "nowhere" }, { hypervisor: "model" }] },
    });
    const isThere = await until(world, async () => {
      return (await imageOf(stage)).status?.copies?.[0]?.state === "Present";
    });
    const { status } = await imageOf(stage);
    assert.ok(isThere, JSON.stringify(status));
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    assert.equal(ready?.status, "False");
    assert.match(ready.message ?? "", /nowhere/);
    assert.ok(writesOf(stage) <= 12, `${writesOf(stage)} status writes`);
  });
});

describe("an image that goes", () => {
  it("is removed from the other places where one does not remove it", async () => {
    const stuck: StageOptions["between"] = async (request, send) => {
      const isIt = request.method === "DELETE" && request.path.startsWith("/nodes/pve1/storage/");
      const answer = { type: "answered", status: 403, reason: "Permission check failed", body: "" };
      return isIt ? (answer as never) : send(request);
    };
    const stage = await open(stuck);
    const { world, proxmox } = stage;
    for (const name of ["web1", "web2"]) {
      assert.ok(await until(world, async () => isReady(await getVm(world.client, name))));
    }
    for (const name of ["web1", "web2"]) {
      await world.client.of(virtualMachineKind).delete({ namespace: "default", name });
      await until(world, async () => (await getVm(world.client, name)) === undefined);
    }
    await world.client.of(vmImageKind).delete(at);
    await until(world, () => false, 5 * minuteMs);
    const left = Object.entries(proxmox.cluster.state.volumes).flatMap(([backing, volumes]) => {
      return volumes.some(({ name }) => name.includes(sha256)) ? [backing.split(":")[0]] : [];
    });
    assert.deepEqual(left, ["pve1"]);
  });
});
