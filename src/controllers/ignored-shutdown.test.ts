import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const at = { namespace: "default", name: "web" };

function reboots({ requests }: SimulatedWorld): number {
  return requests.filter((one) => one.method === "POST" && one.path.endsWith("/reboot")).length;
}

/** A guest without a system, which follows no request; and an edit that needs a restart. */
async function editDeafGuest(stage: SimulatedWorld): Promise<void> {
  const { client } = stage.world;
  await createVm(client, "web", {
    source: { blank: {} },
    disks: [{ name: "root", size: "1Gi", storage: "local-zfs" }],
    shutdown: { graceSeconds: 10, force: false },
    updatePolicy: "Reboot",
  });
  await until(stage.world, async () => isReady(await getVm(client, "web")));
  const merge = {
    metadata: { annotations: { [annotations.reconcileAt]: "asked before" } },
    spec: { cpu: { cores: 3 } },
  };
  await client.of(virtualMachineKind).patch(at, { merge });
}

describe("a guest that does not follow a request to restart", () => {
  it("is asked once, also over restarts of Berth", async () => {
    const stage = await openProxmox("9.2");
    let life = stage.world.start();
    await editDeafGuest(stage);
    for (let times = 0; times < 4; times += 1) {
      await until(stage.world, () => false, 60_000);
      await life.stop();
      life = stage.world.start();
    }
    await until(stage.world, () => false, 60_000);
    assert.equal(reboots(stage), 1);
    const { waitingFor } = (await getVm(stage.world.client, "web"))?.status ?? {};
    assert.match(waitingFor?.name ?? "", /shutdown\.force is off/);
    await life.stop();
  });
});
