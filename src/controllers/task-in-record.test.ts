import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { vmImageKind } from "../api/index.ts";
import type { VirtualMachineStatus } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { configure, decide, leaveVolume, orphanOf, waitForOrphan } from "./orphan/testing.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, until } from "./testing/world.ts";

type Operation = VirtualMachineStatus["operation"];

const writeMs = 10_000;
const disk = "local-zfs:vm-200-disk-0";
const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const image = { namespace: "default", name: "remote" };

interface Story {
  readonly options?: StageOptions;
  readonly begin: (stage: SimulatedWorld) => Promise<unknown>;
  /** The request whose task takes long. */
  readonly isLong: (request: PveRequest) => boolean;
  readonly operation: (stage: SimulatedWorld) => Promise<Operation>;
}

const stories: Readonly<Record<string, Story>> = {
  "a VM": {
    begin: ({ world }) => createVm(world.client, "web", { disks: [root] }),
    isLong: ({ method, path }) => method === "POST" && path.endsWith("/config"),
    operation: async ({ world }) => (await getVm(world.client, "web"))?.status?.operation,
  },
  "a copy of an image": {
    options: nodesWeb,
    begin: ({ world }) => {
      const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
      return world.client.of(vmImageKind).create({
        apiVersion: "berth.dev/v1alpha1",
        kind: "VMImage",
        metadata: image,
        spec: { source: { http }, prefetch: [{ hypervisor: "model" }] },
      });
    },
    isLong: ({ path }) => path.endsWith("/download-url"),
    operation: async ({ world }) => {
      const { status } = await world.client.of(vmImageKind).get(image);
      return status?.copies?.find(({ operation }) => operation !== undefined)?.operation;
    },
  },
  "an Orphan": {
    begin: async ({ world, proxmox }) => {
      leaveVolume(proxmox, "vm-200-disk-0");
      await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
      await decide(world, await waitForOrphan(world, disk), { decision: "Destroy" });
    },
    isLong: ({ method, path }) => method === "DELETE" && path.includes("/content/"),
    operation: async ({ world }) => (await orphanOf(world, disk))?.status?.operation,
  },
};

/** From the long request on every task is said to be running. */
async function openSlow({ options = {}, isLong }: Story): Promise<SimulatedWorld> {
  let isSlow = false;
  return openProxmox("9.2", {
    ...options,
    between: async (request, send) => {
      const reply = await send(request);
      isSlow ||= isLong(request);
      const isLook = /\/tasks\/UPID:[^/]+\/status$/.test(decodeURIComponent(request.path));
      if (!isSlow || !isLook || reply.type !== "answered") return reply;
      const { data } = JSON.parse(reply.body) as { data: Record<string, unknown> };
      const { exitstatus: _exit, ...task } = data;
      return { ...reply, body: JSON.stringify({ data: { ...task, status: "running" } }) };
    },
  });
}

describe("a task that takes long", () => {
  for (const [what, story] of Object.entries(stories)) {
    it(`is in the record of ${what} within ten seconds, for a process that starts then`, async () => {
      const stage = await openSlow(story);
      const { world, requests } = stage;
      world.start();
      await story.begin(stage);
      assert.ok(await until(world, () => requests.some((request) => story.isLong(request))));
      const { id, clock } = (await story.operation(stage)) ?? {};
      assert.ok(clock !== undefined);
      const leftMs = clock.uptimeMs + writeMs - world.clock.monotonicMs();
      await until(world, () => false, leftMs);
      const after = await story.operation(stage);
      assert.equal(after?.id, id, "it goes on");
      assert.match(after?.task ?? "", /^UPID:/);
    });
  }
});
