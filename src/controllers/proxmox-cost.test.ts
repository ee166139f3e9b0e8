import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

const small: Partial<WrittenVirtualMachineSpec> = {
  disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
  placement: { node: "pve1" },
};

async function make(
  { world }: SimulatedWorld,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec>,
): Promise<void> {
  await createVm(world.client, name, { ...small, ...spec });
  const isThere = await until(world, async () => isReady(await getVm(world.client, name)));
  const vm = await getVm(world.client, name);
  assert.ok(isThere, JSON.stringify(vm?.status, undefined, 1));
  assert.equal(condition(vm, "Synced"), "True Succeeded");
}

/** Between two glances at a cluster, where its Hypervisor says nothing else. */
const tickMs = 5_000;

/** Writes and reads, but for looking how far a task is and for the one glance of each tick. */
function counted(requests: PveRequest[]): { readonly writes: string[]; readonly reads: string[] } {
  const own = requests.splice(0).filter(({ path, method, params }) => {
    const isGlance = path === "/cluster/resources" && params?.["type"] === undefined;
    const isPolling = /\/tasks\/[^/]+\/status$/.test(path);
    const isAgent = path.includes("/agent/");
    return method !== "GET" || !(isGlance || isPolling || isAgent);
  });
  const told = own.map(({ method, path }) => `${method} ${path}`);
  return {
    writes: told.filter((text) => !text.startsWith("GET")),
    reads: told.filter((text) => text.startsWith("GET")),
  };
}

describe("the price of a machine through the controllers", () => {
  it("is at most 5 writes and 8 reads from a present image", async () => {
    const stage = await openProxmox("9.2");
    const berth = stage.world.start();
    await make(stage, "first", {});
    await until(stage.world, () => false, 60_000);
    counted(stage.requests);
    await make(stage, "second", {
      firmware: { type: "UEFI" },
      cloudInit: { user: { name: "ada" } },
    });
    const { writes, reads } = counted(stage.requests);
    assert.ok(writes.length <= 5, writes.join("\n"));
    // One of them before the copy: how large it will be. By that and the listing of the preflight
    // what a worker that dies leaves behind is told from a stranger's volume.
    assert.ok(reads.length <= 8, reads.join("\n"));
    berth.crash();
  });

  it("is one glance per tick while nothing changes", async () => {
    const stage = await openProxmox("9.2");
    const berth = stage.world.start();
    for (const name of ["a", "b", "c"]) await make(stage, name, { guestAgent: { enabled: false } });
    await until(stage.world, () => false, 60_000);
    counted(stage.requests);
    await until(stage.world, () => false, 600_000);
    const glances = stage.requests.filter(({ path }) => path === "/cluster/resources").length;
    const { writes, reads } = counted(stage.requests);
    assert.deepEqual(writes, []);
    assert.ok(glances <= 601_000 / tickMs, `${glances} glances`);
    // Every ten minutes the system itself is asked who it is.
    assert.deepEqual(
      reads.map((text) => text.split("/").at(-1)),
      ["version", "nodes", "info", "permissions"].slice(0, reads.length),
    );
    berth.crash();
  });
});
