import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import type { ProxmoxModel } from "../sim/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const web = { namespace: "default", name: "web" };

/** Somebody moves the one VM to another node, with its disks. */
function move(proxmox: ProxmoxModel): string {
  const { guests, volumes } = proxmox.cluster.state;
  const [[id, { node: from, text }] = ["", { node: "", text: "" }]] = Object.entries(guests);
  const to = from === "pve1" ? "pve2" : "pve1";
  proxmox.removeGuestFile(Number(id));
  proxmox.writeGuestFile(to, Number(id), text);
  volumes[`${to}:rpool/data`] = volumes[`${from}:rpool/data`] ?? [];
  volumes[`${from}:rpool/data`] = [];
  return to;
}

/** Requests whose effect is decided by a worker, which finds no configuration on its node. */
const sent = {
  grow: /\/resize$/,
  start: /\/status\/start$/,
} as const;

for (const release of ["8.4", "9.2"] as const) {
  describe(`a VM that somebody moves just before a request arrives, on ${release}`, () => {
    for (const [name, path] of Object.entries(sent)) {
      it(`is followed, and never called Missing: ${name}`, async () => {
        let to: string | undefined;
        const stage = await openProxmox(release, {
          between: (request, send) => {
            if (to === undefined && path.test(request.path)) to = move(stage.proxmox);
            return send(request);
          },
        });
        const { world } = stage;
        world.start();
        await createVm(world.client, "web", { disks });
        const told = new Set<string>();
        const isThere = await until(world, async () => {
          const vm = await getVm(world.client, "web");
          told.add(vm?.status?.failure?.category ?? "");
          return to !== undefined && isReady(vm);
        });
        const vm = await getVm(world.client, "web");
        assert.deepEqual([...told], [""]);
        assert.ok(isThere, JSON.stringify(vm?.status));
        assert.equal(vm?.status?.node, to);
      });
    }

    it("is destroyed where it is, when its deletion was sent to the other node", async () => {
      let to: string | undefined;
      const stage = await openProxmox(release, {
        between: (request, send) => {
          const isDestroy = request.method === "DELETE" && /\/qemu\/\d+$/.test(request.path);
          if (to === undefined && isDestroy) to = move(stage.proxmox);
          return send(request);
        },
      });
      const { world, proxmox } = stage;
      world.start();
      await createVm(world.client, "web", { disks, powerState: "Stopped" });
      await until(world, async () => isReady(await getVm(world.client, "web")));
      await world.client.of(virtualMachineKind).delete(web);
      await until(world, async () => (await getVm(world.client, "web")) === undefined);
      assert.equal(await getVm(world.client, "web"), undefined);
      assert.notEqual(to, undefined);
      assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
    });
  });
}
