import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

async function refused({ world }: SimulatedWorld): Promise<VirtualMachine> {
  await until(world, async () => (await getVm(world.client, "web"))?.status?.failure !== undefined);
  const vm = await getVm(world.client, "web");
  assert.ok(vm);
  return vm;
}

function writes({ requests }: SimulatedWorld): string[] {
  return requests.filter(({ method }) => method !== "GET").map(({ path }) => path);
}

describe("before the first effect", () => {
  it("everything that is wrong is named at once, and the most severe decides", async () => {
    const simulated = await openProxmox();
    const { world } = simulated;
    const quotas = [{ namespace: "*", cpu: 1 }];
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec: { quotas } } });
    world.start();
    await createVm(world.client, "web", {
      classRef: { name: "small" },
      cpu: { cores: 4 },
      source: { image: { name: "nowhere" } },
      disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
      networks: [
        { name: "lan", bridge: "vmbr77" },
        { name: "dmz", networkRef: { name: "dmz" } },
      ],
    });
    const { status } = await refused(simulated);
    const message = status?.failure?.message ?? "";
    assert.match(message, /^5 things are wrong: \(1\) /);
    const parts = [/bridge vmbr77/, /quota: cpu 4 of 1/, /no VMImage nowhere/, /no VMClass small/];
    for (const part of [...parts, /no VMNetwork dmz/]) assert.match(message, part);
    assert.equal(status?.failure?.category, "ConfigurationError");
    assert.match(status.failure.remedy ?? "", /\(1\) .*\(2\) .*\(3\) /);
    assert.equal(condition(await getVm(world.client, "web"), "Stalled"), "True ConfigurationError");
    assert.deepEqual(writes(simulated), []);
  });

  const misplaced = [
    { reason: "a node that does not exist", placement: { node: "pve9" }, says: /no node pve9\./ },
    { reason: "a storage that is nowhere", storage: "tank", says: /has the storage tank\./ },
    {
      reason: "both of them, and a source",
      placement: { node: "pve9" },
      storage: "tank",
      source: { image: { name: "nowhere" } },
      says: /no node pve9.*has the storage tank.*no VMImage nowhere/,
    },
  ];
  for (const { reason, placement = {}, storage = "local-zfs", says, ...more } of misplaced) {
    it(`${reason}: all that is wrong besides is named with it, and nothing twice`, async () => {
      const simulated = await openProxmox();
      const { world } = simulated;
      const quotas = [{ namespace: "*", cpu: 1 }];
      const merge = { spec: { quotas } };
      await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
      world.start();
      await createVm(world.client, "web", {
        cpu: { cores: 4 },
        placement,
        ...more,
        disks: [
          { name: "root", size: "10Gi", storage },
          { name: "data", size: "900Ti", storage: "local-zfs" },
        ],
        networks: [{ name: "lan", bridge: "vmbr77" }],
      });
      const { status } = await refused(simulated);
      const message = status?.failure?.message ?? "";
      const rest = [
        /bridge vmbr77/,
        /quota: cpu 4 of 1/,
        /local-zfs has [\d.]+ GiB left of 900 TiB/,
      ];
      for (const part of [says, ...rest]) assert.match(message, part);
      assert.equal(message.match(/tank/g)?.length ?? 0, storage === "tank" ? 1 : 0, message);
      assert.equal(status?.failure?.category, "ConfigurationError");
      assert.deepEqual(writes(simulated), []);
    });
  }

  it("a node that is down: the quota is named with it, and no other node speaks for it", async () => {
    const simulated = await openProxmox();
    const { world, proxmox } = simulated;
    const quotas = [{ namespace: "*", cpu: 1 }];
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec: { quotas } } });
    world.start();
    await until(world, () => false, 30_000);
    proxmox.crashNode("pve2");
    await until(world, () => false, 60_000);
    await createVm(world.client, "web", {
      cpu: { cores: 4 },
      placement: { node: "pve2" },
      disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
      networks: [{ name: "lan", bridge: "vmbr77" }],
    });
    const { status } = await refused(simulated);
    const message = status?.failure?.message ?? "";
    assert.match(message, /^2 things are wrong: .*quota: cpu 4 of 1.*not healthy: pve2/);
    assert.deepEqual(writes(simulated), []);
  });

  it("rights that are given nowhere are named, and once granted it goes on", async () => {
    const simulated = await openProxmox();
    const { world, proxmox } = simulated;
    const { roles, acl } = proxmox.cluster.state;
    const most =
      "VM.Allocate VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Network " +
      "VM.Config.HWType VM.Config.Options VM.Config.Cloudinit VM.Config.CDROM VM.PowerMgmt " +
      "VM.Monitor VM.Clone VM.Migrate Datastore.AllocateSpace Datastore.AllocateTemplate " +
      "Datastore.Allocate Datastore.Audit Sys.Audit Sys.AccessNetwork SDN.Use";
    roles["Most"] = most.split(" ");
    for (const entry of acl) entry.roleid = "Most";
    world.start();
    const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
    await createVm(world.client, "web", { disks });
    const { status } = await refused(simulated);
    assert.equal(status?.failure?.category, "PermissionDenied");
    assert.match(status.failure.message, /VM\.Config\.Disk/);
    assert.deepEqual(writes(simulated), [], "a machine without its disk would have been made");
    roles["Most"] = [...roles["Most"], "VM.Config.Disk"];
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
  });
});
