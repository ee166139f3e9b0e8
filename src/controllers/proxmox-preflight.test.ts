import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../api/index.ts";
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
        /local-zfs has 800 GiB left of 900(\.1)? TiB needed/,
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
    const { world } = simulated;
    const grant = grantAllBut(simulated, "VM.Config.Disk");
    world.start();
    const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
    await createVm(world.client, "web", { disks });
    const { status } = await refused(simulated);
    assert.equal(status?.failure?.category, "PermissionDenied");
    assert.match(status.failure.message, /VM\.Config\.Disk/);
    assert.deepEqual(writes(simulated), [], "a machine without its disk would have been made");
    grant();
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
  });

  it("a pool that does not exist is named with the rest, and once it is there it goes on", async () => {
    const simulated = await openProxmox();
    const { world, proxmox } = simulated;
    world.start();
    await createVm(world.client, "web", {
      disks,
      placement: { pool: "lab" },
      networks: [{ name: "lan", bridge: "vmbr77" }],
    });
    const { status } = await refused(simulated);
    assert.equal(status?.failure?.category, "ConfigurationError");
    assert.match(status.failure.message, /pool lab does not exist.*bridge vmbr77/);
    assert.deepEqual(writes(simulated), []);
    await edit(simulated, { networks: [] });
    proxmox.cluster.state.pools.push({ poolid: "lab", vms: [], storages: [] });
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
    const lab = proxmox.cluster.state.pools.find(({ poolid }) => poolid === "lab");
    assert.equal(lab?.vms.length, 1);
  });

  it("a pool that the token may not see is no reason to refuse it", async () => {
    const simulated = await openProxmox();
    const { world, proxmox } = simulated;
    proxmox.cluster.state.pools.push({ poolid: "lab", vms: [], storages: [] });
    const { roles, acl } = proxmox.cluster.state;
    roles["NoPool"] = ["VM.Allocate", "VM.Config.Options", "VM.Audit", "Pool.Allocate"];
    acl.push(...acl.map((entry) => ({ ...entry, path: "/pool/lab", roleid: "NoPool" })));
    world.start();
    await createVm(world.client, "web", { disks, placement: { pool: "lab" } });
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
  });

  it("the right to upload is needed where the first boot has a disc of its own", async () => {
    const simulated = await openProxmox();
    const { world } = simulated;
    const grant = grantAllBut(simulated, "Datastore.AllocateTemplate");
    world.start();
    await createVm(world.client, "plain", { disks });
    const isPlain = await until(world, async () => isReady(await getVm(world.client, "plain")));
    assert.ok(isPlain, "without such a disc it is not needed");
    const before = writes(simulated).length;
    await createVm(world.client, "web", { disks, cloudInit: { hostname: "other.example" } });
    const { status } = await refused(simulated);
    assert.equal(status?.failure?.category, "PermissionDenied");
    assert.match(status.failure.message, /Datastore\.AllocateTemplate/);
    assert.equal(writes(simulated).length, before, "a machine without its disc would be made");
    grant();
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
  });
});

describe("before the first effect of an edit", () => {
  it("all that is wrong with what it adds is named, and nothing of it is applied", async () => {
    const { simulated, calls } = await standing();
    const { world } = simulated;
    const before = writes(simulated).length;
    await edit(simulated, {
      cpu: { cores: 3 },
      disks: [...disks, { name: "data", size: "5Gi", storage: "tank" }, huge],
      networks: [{ name: "lan", bridge: "vmbr77" }],
    });
    const { status } = await refused(simulated);
    const message = status?.failure?.message ?? "";
    assert.match(message, /^3 things are wrong: /);
    const full = /local-zfs has 800 GiB left of 900 TiB/;
    const parts = [/storage tank does not exist/, full, /bridge vmbr77/];
    for (const part of parts) assert.match(message, part);
    assert.equal(status?.failure?.category, "ConfigurationError");
    assert.equal(condition(await getVm(world.client, "web"), "Stalled"), "True ConfigurationError");
    await until(world, () => false, 30 * 60_000);
    assert.equal(writes(simulated).length, before);
    calls.splice(0);
    const data = { name: "data", size: "5Gi", storage: "local-zfs" };
    const networks = [{ name: "lan", bridge: "vmbr0" }];
    await edit(simulated, { disks: [...disks, data], networks });
    await synced(simulated);
    assert.equal(calls.filter((call) => call === "preflight").length, 1, "for the whole edit");
  });

  it("a storage that a disk is moved to is looked for", async () => {
    const { simulated } = await standing();
    const before = writes(simulated).length;
    await edit(simulated, {
      cpu: { cores: 3 },
      disks: [{ name: "root", size: "10Gi", storage: "tank" }],
    });
    const { status } = await refused(simulated);
    assert.match(status?.failure?.message ?? "", /storage tank does not exist/);
    assert.equal(writes(simulated).length, before);
  });

  it("nothing is asked for where it adds neither a disk nor a card", async () => {
    const { simulated, calls } = await standing();
    calls.splice(0);
    await edit(simulated, {
      cpu: { cores: 3 },
      disks: [{ name: "root", size: "12Gi", storage: "local-zfs" }],
    });
    await synced(simulated);
    assert.ok(!calls.includes("preflight"), calls.join("\n"));
  });

  it("a disk that was detached comes back without being looked for", async () => {
    const more = { name: "data", size: "5Gi", storage: "local-zfs" };
    const { simulated, calls } = await standing({ disks: [...disks, more] });
    await edit(simulated, { disks });
    await synced(simulated);
    calls.splice(0);
    await edit(simulated, { disks: [...disks, more] });
    await synced(simulated);
    assert.ok(!calls.includes("preflight"), calls.join("\n"));
  });
});

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const huge = { name: "huge", size: "900Ti", storage: "local-zfs" };

const rights =
  "VM.Allocate VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Network VM.Config.Disk " +
  "VM.Config.HWType VM.Config.Options VM.Config.Cloudinit VM.Config.CDROM VM.PowerMgmt " +
  "VM.Monitor VM.Clone VM.Migrate Datastore.AllocateSpace Datastore.AllocateTemplate " +
  "Datastore.Allocate Datastore.Audit Sys.Audit Sys.AccessNetwork SDN.Use Pool.Audit Pool.Allocate";

/** Gives the token all rights but one, and resolves with what grants that one too. */
function grantAllBut({ proxmox }: SimulatedWorld, lacking: string): () => void {
  const { roles, acl } = proxmox.cluster.state;
  const all = rights.split(" ");
  roles["Most"] = all.filter((right) => right !== lacking);
  for (const entry of acl) entry.roleid = "Most";
  return () => {
    roles["Most"] = all;
  };
}

async function edit({ world }: SimulatedWorld, spec: object): Promise<void> {
  const place = { namespace: "default", name: "web" };
  await world.client.of(virtualMachineKind).patch(place, { merge: { spec } });
}

/** A machine that stands, and what its driver is asked. */
async function standing(
  spec: Partial<WrittenVirtualMachineSpec> = {},
): Promise<{ readonly simulated: SimulatedWorld; readonly calls: string[] }> {
  const simulated = await openProxmox();
  const { calls } = simulated.world.start();
  await createVm(simulated.world.client, "web", { disks, updatePolicy: "PowerOff", ...spec });
  await synced(simulated);
  return { simulated, calls };
}

async function synced({ world }: SimulatedWorld): Promise<void> {
  const isSynced = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    const isApplied = vm?.status?.appliedGeneration === vm?.metadata.generation;
    return isApplied && isReady(vm) && condition(vm, "Synced") === "True Succeeded";
  });
  assert.ok(isSynced, JSON.stringify((await getVm(world.client, "web"))?.status, undefined, 1));
}
