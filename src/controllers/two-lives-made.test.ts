import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, claimKind, hypervisorKind, virtualMachineKind } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import {
  createVm,
  getVm,
  isReady,
  listClaims,
  until,
  type Incarnation,
  type World,
} from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];

interface Lives {
  readonly stage: SimulatedWorld;
  readonly original: World;
  readonly restored: World;
}

/** Berth runs, a VM is declared, and a backup is made before it is created: both are to do that. */
async function declareForBoth(): Promise<Lives & { readonly first: Incarnation }> {
  const stage = await openProxmox();
  const { world: original } = stage;
  const first = original.start();
  assert.ok(await until(original, async () => (await readyOf(original)) === "True Connected"));
  await createVm(original.client, "web", { disks, guestAgent: { enabled: false } });
  const restored = await original.copy();
  assert.deepEqual(await listClaims(restored.client), [], "the backup is made too late");
  return { stage, original, restored, first };
}

async function readyOf({ client }: World): Promise<string> {
  const { status } = await client.of(hypervisorKind).get({ name: "model" });
  const found = status?.conditions?.find(({ type }) => type === "Ready");
  return `${found?.status} ${found?.reason}`;
}

async function isUp(world: World): Promise<boolean> {
  return until(world, async () => isReady(await getVm(world.client, "web")), 10 * 60_000);
}

function guestsOf({ proxmox }: SimulatedWorld): string[] {
  return Object.keys(proxmox.cluster.state.guests);
}

/** Power steps that were sent. */
function powerSteps({ requests }: SimulatedWorld): string[] {
  const sent = requests.filter(({ method, path }) => method === "POST" && /\/status\//.test(path));
  return sent.map(({ path }) => path.replace(/^.*\/status\//, ""));
}

describe("a VM whose Claim and status were both lost", () => {
  for (const isForgetful of [false, true]) {
    const how = isForgetful ? ", by a process that forgets everything" : "";
    it(`is taken over as it runs, and not started unseen${how}`, async () => {
      const stage = await openProxmox();
      const { world } = stage;
      const first = world.start();
      await createVm(world.client, "web", { disks, guestAgent: { enabled: false } });
      assert.ok(await isUp(world));
      first.crash();
      const { client } = world;
      for (const { metadata } of await listClaims(client)) {
        const { name = "" } = metadata;
        const merge = { metadata: { finalizers: [] } };
        await client.of(claimKind).patch({ name }, { merge });
        await client.of(claimKind).delete({ name });
      }
      const vm = await getVm(client, "web");
      assert.ok(vm);
      const { status: _lost, ...rest } = vm;
      await client.of(virtualMachineKind).updateStatus(rest);
      assert.deepEqual(await listClaims(client), []);
      const before = powerSteps(stage).length;
      world.start({ forgets: () => isForgetful });
      assert.ok(await isUp(world), JSON.stringify((await getVm(client, "web"))?.status));
      assert.deepEqual(powerSteps(stage).slice(before), []);
      assert.equal((await getVm(client, "web"))?.status?.powerState, "Running");
      assert.equal(guestsOf(stage).length, 1);
    });
  }
});

describe("a VM that the original and a copy of it are to create", () => {
  it("is taken over by the copy where the original created it after the backup", async () => {
    const { stage, original, restored, first } = await declareForBoth();
    assert.ok(await isUp(original));
    first.crash();
    const made = guestsOf(stage);
    const second = restored.start();
    assert.ok(await isUp(restored), JSON.stringify(await getVm(restored.client, "web")));
    assert.deepEqual(guestsOf(stage), made, "one object has two VMs");
    const [claim] = await listClaims(restored.client);
    assert.deepEqual([claim?.spec.externalId, claim?.spec.state], [made[0], "Bound"]);
    assert.equal(claim?.spec.volumes?.length, 1);
    second.crash();
  });

  it("is taken back by the copy where the original created and released it", async () => {
    const { stage, original, restored, first } = await declareForBoth();
    assert.ok(await isUp(original));
    const made = guestsOf(stage);
    const vms = original.client.of(virtualMachineKind);
    const web = { namespace: "default", name: "web" };
    await vms.patch(web, { merge: { spec: { deletionPolicy: "Retain" } } });
    await vms.delete(web);
    const isGone = async (): Promise<boolean> => !(await getVm(original.client, "web"));
    assert.ok(await until(original, isGone));
    first.crash();
    restored.start();
    assert.ok(await isUp(restored), JSON.stringify(await getVm(restored.client, "web")));
    assert.deepEqual(guestsOf(stage), made, "one object has two VMs");
    const [claim, ...others] = await listClaims(restored.client);
    const { externalId, state, origin } = claim?.spec ?? {};
    assert.deepEqual([externalId, state, origin], [made[0], "Bound", "Adopted"]);
    assert.deepEqual(others, []);
  });

  it("is not started again by the copy where it runs", async () => {
    const { stage, original, restored, first } = await declareForBoth();
    assert.ok(await isUp(original));
    first.crash();
    const before = powerSteps(stage).length;
    restored.start();
    assert.ok(await isUp(restored), JSON.stringify(await getVm(restored.client, "web")));
    assert.deepEqual(powerSteps(stage).slice(before), []);
  });

  it("is not taken over where no task of Berth's created it: anybody may write a marker", async () => {
    const { stage, original, restored, first } = await declareForBoth();
    assert.ok(await isUp(original));
    first.crash();
    for (const node of stage.proxmox.cluster.state.nodes) {
      node.tasks = [];
    }
    const second = restored.start();
    const isSaid = await until(restored, async () => {
      const { failure } = (await getVm(restored.client, "web"))?.status ?? {};
      return failure?.category === "IdentityConflict";
    });
    assert.ok(isSaid, JSON.stringify((await getVm(restored.client, "web"))?.status));
    const claims = await listClaims(restored.client);
    assert.ok(
      claims.every(({ spec }) => spec.state !== "Bound"),
      JSON.stringify(claims),
    );
    second.crash();
  });

  it("is one VM where both create it at the same moment", async () => {
    const { stage, original, restored, first } = await declareForBoth();
    const second = restored.start();
    const isTwo = await until(original, () => guestsOf(stage).length > 1, 5 * 60_000);
    assert.ok(!isTwo, `one object has two VMs: ${guestsOf(stage).join(", ")}`);
    assert.equal(guestsOf(stage).length, 1);
    assert.ok(await isUp(restored));
    for (const life of [first, second]) life.crash();
  });
});

const at = { namespace: "default", name: "web" };
const place = { id: "machine-a/inode-1", name: "server" };

/** A VM that cannot be created yet, so that its id is only reserved, and a backup from then. */
async function reserveForBoth(): Promise<Lives & { readonly first: Incarnation }> {
  const stage = await openProxmox();
  const { world: original } = stage;
  const first = original.start({ place });
  const networks = [{ name: "lan", bridge: "vmbr77" }];
  await createVm(original.client, "web", { disks, networks, guestAgent: { enabled: false } });
  const isHeld = await until(original, async () => {
    return (await listClaims(original.client)).some(({ spec }) => spec.preflight === "Pending");
  });
  assert.ok(isHeld);
  const restored = await original.copy();
  for (const world of [original, restored]) {
    const merge = { spec: { networks: [{ name: "lan", bridge: "vmbr0" }] } };
    await world.client.of(virtualMachineKind).patch(at, { merge });
  }
  return { stage, original, restored, first };
}

describe("a VM that another run created under an id that was only reserved here", () => {
  it("is taken over, and the id is not given up", async () => {
    const { stage, original, restored, first } = await reserveForBoth();
    assert.ok(await isUp(original));
    first.crash();
    const made = guestsOf(stage);
    const second = restored.start({ place });
    assert.ok(await isUp(restored), JSON.stringify(await getVm(restored.client, "web")));
    assert.deepEqual(guestsOf(stage), made, "one object has two VMs");
    const claims = await listClaims(restored.client);
    assert.deepEqual(
      claims.map(({ spec }) => `${spec.externalId} ${spec.state}`),
      [`${made[0]} Bound`],
    );
    second.crash();
  });

  it("is deleted with its object, and its disk, which nothing proves, stays", async () => {
    const { stage, original, restored, first } = await reserveForBoth();
    assert.ok(await isUp(original));
    first.crash();
    await restored.client.of(virtualMachineKind).delete(at);
    const second = restored.start({ place });
    const isGone = await until(
      restored,
      async () => (await getVm(restored.client, "web")) === undefined,
      10 * 60_000,
    );
    assert.ok(isGone, JSON.stringify(await getVm(restored.client, "web")));
    await demandDiskHolder(stage, restored);
    second.crash();
  });

  it("keeps its object from being deleted by a run that only observes, until it acts", async () => {
    const { stage, original, restored, first } = await reserveForBoth();
    assert.ok(await isUp(original));
    const second = restored.start({ place: { id: "machine-b/inode-2", name: "laptop" } });
    await restored.client.of(virtualMachineKind).delete(at);
    await until(restored, () => false, 60_000);
    const { status } = (await getVm(restored.client, "web")) ?? {};
    assert.equal(status?.failure?.category, "DependencyNotReady", JSON.stringify(status));
    assert.equal(guestsOf(stage).length, 1);
    first.crash();
    const hypervisors = restored.client.of(hypervisorKind);
    const { status: seen } = await hypervisors.get({ name: "model" });
    const token = `2026-11-16T12:00:00Z ${seen?.observedBy}`;
    const merge = { metadata: { annotations: { [annotations.takeoverAt]: token } } };
    await hypervisors.patch({ name: "model" }, { merge });
    const isGone = await until(
      restored,
      async () => (await getVm(restored.client, "web")) === undefined,
      10 * 60_000,
    );
    assert.ok(isGone, JSON.stringify(await getVm(restored.client, "web")));
    await demandDiskHolder(stage, restored);
    second.crash();
  });
});

/** Only the other run knew what it had made: this one keeps the disk, under a Claim. */
async function demandDiskHolder(
  stage: Lives["stage"],
  { client }: Lives["restored"],
): Promise<void> {
  const claims = await listClaims(client);
  const holders = claims.filter(({ spec }) => spec.role === "DiskHolder");
  assert.deepEqual(
    guestsOf(stage),
    holders.map(({ spec }) => spec.externalId),
  );
}
