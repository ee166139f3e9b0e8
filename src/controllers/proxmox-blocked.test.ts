import assert from "node:assert/strict";
import { test } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const disks = [{ name: "root", size: "5Gi", storage: "local-zfs" }];

test("while somebody holds a machine's lock the attempts become rarer, and count for nothing", async () => {
  const held = { isHeld: false, times: 0 };
  const { world } = await openProxmox("9.2", {
    between: async (request, send) => {
      const isStart = request.path.endsWith("/status/start");
      if (!isStart || !held.isHeld) return send(request);
      held.times += 1;
      const reason = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
      return { type: "answered", status: 500, reason, body: '{"data":null}', from: "pve1" };
    },
  });
  world.start();
  await createVm(world.client, "web", { powerState: "Stopped", disks });
  const ready = async (): Promise<boolean> => isReady(await getVm(world.client, "web"));
  assert.ok(await until(world, ready));
  held.isHeld = true;
  const merge = { spec: { powerState: "Running" } };
  await world.client.of(virtualMachineKind).patch({ namespace: "default", name: "web" }, { merge });
  await until(world, () => false, 10 * 60_000);
  const { status } = (await getVm(world.client, "web")) ?? {};
  assert.ok(held.times >= 5 && held.times <= 16, `${held.times} attempts in ten minutes`);
  assert.equal(status?.failure, undefined);
  assert.equal(status?.waitingFor?.kind, "Lock");
  held.isHeld = false;
  assert.ok(await until(world, ready, 2 * 60_000));
});
