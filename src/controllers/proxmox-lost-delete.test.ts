import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const timeOut = { type: "answered", status: 596, reason: "Connection timed out", body: "" };

interface Lost extends SimulatedWorld {
  /** Requests about the VM since it was to be deleted, with when they were sent. */
  readonly asked: { readonly request: PveRequest; readonly atMs: number }[];
}

/** A VM that is being deleted, while each DELETE of it is answered by a time-out. */
async function openLost({ isSent }: { readonly isSent: boolean }): Promise<Lost> {
  const asked: Lost["asked"] = [];
  let isDeleted = false;
  const stage: SimulatedWorld = await openProxmox("8.4", {
    between: async (request, send) => {
      if (!isDeleted || request.path === "/cluster/resources") return send(request);
      asked.push({ request, atMs: stage.world.clock.monotonicMs() });
      if (request.method !== "DELETE") return send(request);
      if (isSent) await send(request);
      return timeOut as never;
    },
  });
  const { world } = stage;
  world.start();
  await createVm(world.client, "web", {
    powerState: "Stopped",
    placement: { node: "pve1" },
    disks: [{ name: "root", size: "5Gi", storage: "local-zfs" }],
  });
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  isDeleted = true;
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
  return { ...stage, asked };
}

function sentOf({ asked }: Lost): number[] {
  return asked.filter(({ request }) => request.method === "DELETE").map(({ atMs }) => atMs);
}

describe("a VM whose DELETE is answered by a time-out", () => {
  it("is asked about ever more seldom while nothing changes", async () => {
    const lost = await openLost({ isSent: false });
    await until(lost.world, () => false, 600_000);
    assert.ok(sentOf(lost).length <= 10, `${sentOf(lost).length} requests to destroy it`);
    // Each look asks about all of it, which takes seven requests.
    assert.ok(lost.asked.length < 900, `${lost.asked.length} requests`);
    const [firstMs = 0, secondMs = 0] = sentOf(lost);
    const looks = lost.asked.filter(({ request }) => request.path.endsWith("/tasks"));
    const during = looks.filter(({ atMs }) => atMs > firstMs && atMs < secondMs);
    assert.ok(during.length < 20, `${during.length} looks in the first minute`);
  });

  it("is seen to be gone within seconds where the request arrived", async () => {
    const lost = await openLost({ isSent: true });
    const isGone = await until(
      lost.world,
      async () => (await getVm(lost.world.client, "web")) === undefined,
      15_000,
    );
    assert.ok(isGone, JSON.stringify((await getVm(lost.world.client, "web"))?.status));
    assert.equal(sentOf(lost).length, 1);
  });
});
