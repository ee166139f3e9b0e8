import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const spec = { externalId: "300", disks: [{ name: "root", size: "5Gi", storage: "local-zfs" }] };

describe("a creation that arrives twice", () => {
  it("and is refused the second time has made the machine: it is looked at first", async () => {
    const { world, requests } = await openProxmox("9.2", {
      between: async (request, send) => {
        const isCreation = request.method === "POST" && request.path.endsWith("/qemu");
        if (isCreation) await send(request);
        return send(request);
      },
    });
    const told: string[] = [];
    world.start();
    await createVm(world.client, "web", spec);
    const isThere = await until(world, async () => {
      const vm = await getVm(world.client, "web");
      told.push(...(vm?.status?.failure === undefined ? [] : [vm.status.failure.category]));
      return isReady(vm);
    });
    assert.ok(isThere, JSON.stringify(await getVm(world.client, "web")));
    assert.deepEqual(told, []);
    const creations = requests.filter(({ method, path }) => {
      return method === "POST" && path.endsWith("/qemu");
    });
    assert.equal(creations.length, 1);
  });
});
