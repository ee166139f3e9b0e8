import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../../api/index.ts";
import { eventsOf } from "../testing/events.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until, type Incarnation } from "../testing/world.ts";
import {
  configure,
  decide,
  disks,
  gib,
  leaveVolume,
  longMs,
  orphanOf,
  reasonOf,
  slow,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const disk = "local-zfs:vm-200-disk-0";
const drive = "local-zfs:vm-200-cloudinit";
const declared: Partial<WrittenVirtualMachineSpec> = {
  disks,
  externalId: "200",
  placement: { node: "pve1" },
};

/** The host of the report: an earlier machine 200 is gone, and two of its datasets are not. */
async function openHost(
  node = "pve1",
): Promise<SimulatedWorld & { readonly program: Incarnation }> {
  const stage = await openProxmox();
  const backing = `${node}:rpool/data`;
  leaveVolume(stage.proxmox, "vm-200-cloudinit", { sizeBytes: 4 * 1024 ** 2, backing });
  leaveVolume(stage.proxmox, "vm-200-disk-0", { sizeBytes: 10 * gib, backing });
  return { ...stage, program: stage.world.start(slow) };
}

function writesOf({ requests }: SimulatedWorld): string[] {
  return requests.filter(({ method }) => method !== "GET").map(({ path }) => path);
}

/** As `berth retry` does. */
async function ask({ client }: SimulatedWorld["world"]): Promise<void> {
  const asked = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
  await client
    .of(virtualMachineKind)
    .patch({ namespace: "default", name: "web" }, { merge: asked });
}

describe("a declared machine whose id has volumes of an earlier one", () => {
  it("stalls once and names them with the ways out, for as long as it takes", async () => {
    const stage = await openHost();
    const { world } = stage;
    await createVm(world.client, "web", declared);
    await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
    const before = world.statusWrites.length;
    await until(world, () => false, longMs);
    const vm = await getVm(world.client, "web");
    assert.equal(condition(vm, "Stalled"), "True OrphanedVolumes");
    const { message = "", remedy = "", attempts } = vm?.status?.failure ?? {};
    for (const volume of [disk, drive]) assert.ok(message.includes(volume), message);
    assert.match(remedy, /berth orphans destroy .*importedDisk with mode: Take.*externalId/);
    assert.equal(attempts, 1);
    assert.deepEqual(writesOf(stage), []);
    const writes = world.statusWrites.slice(before).filter((path) => path.includes("virtual"));
    assert.deepEqual(writes, []);
    const told = (await eventsOf(world.client)).filter(
      ({ reason }) => reason === "OrphanedVolumes",
    );
    assert.equal(told.length, 1);
  });

  it("is made by itself once a person has destroyed both, which frees what they took", async () => {
    const stage = await openHost();
    const { world } = stage;
    await createVm(world.client, "web", declared);
    // Somebody waits for them, so nobody has to wait for the grace time.
    const first = await waitForOrphan(world, disk);
    assert.ok(world.clock.monotonicMs() < 600_000);
    assert.equal(first.status?.ownership, "Unattributed");
    assert.deepEqual(first.status?.blocks, ["default/web"]);
    assert.equal(first.status?.size, String(10 * gib));
    assert.equal(reasonOf(first), "DecisionNeeded");
    await decide(world, first, { decision: "Destroy" });
    await decide(world, await waitForOrphan(world, drive), { decision: "Destroy" });
    const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
    assert.ok(isThere, JSON.stringify((await getVm(world.client, "web"))?.status));
    const gone = await orphanOf(world, disk);
    assert.equal(reasonOf(gone), "Gone");
    assert.equal(gone?.status?.reclaimed, String(10 * gib));
    const told = (await eventsOf(world.client)).map(({ note }) => note);
    assert.ok(told.includes(`Destroyed Volume ${disk}: ${10 * gib} bytes were reclaimed.`));
    await until(world, () => false, longMs);
    assert.equal(await orphanOf(world, disk), undefined);
  });

  it("takes the disk as its own where the spec says so, and is made once the rest is gone", async () => {
    const stage = await openHost();
    const { world } = stage;
    const source = { importedDisk: { diskId: disk, from: "manual", mode: "Take" } } as const;
    await createVm(world.client, "web", { ...declared, source });
    await decide(world, await waitForOrphan(world, drive), { decision: "Destroy" });
    const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
    const vm = await getVm(world.client, "web");
    assert.ok(
      isThere,
      JSON.stringify([(await orphanOf(world, drive))?.status, vm?.status, world.log]),
    );
    assert.deepEqual(
      vm?.status?.disks?.map(({ volume }) => volume),
      [disk],
    );
    await until(world, () => false, longMs);
    assert.equal(await orphanOf(world, disk), undefined);
    const namespace = "default";
    await world.client.of(virtualMachineKind).delete({ namespace, name: "web" });
    await until(world, async () => (await getVm(world.client, "web")) === undefined);
    assert.deepEqual(volumeNames(stage.proxmox), []);
  });

  it("is not made over volumes that a list misses for a while, also after a restart", async () => {
    const stage = await openHost();
    const { world } = stage;
    await createVm(world.client, "web", declared);
    const failureOf = async () => (await getVm(world.client, "web"))?.status?.failure;
    await until(world, async () => (await failureOf()) !== undefined);
    const { volumes } = stage.proxmox.cluster.state;
    const hidden = volumes["pve1:rpool/data"] ?? [];
    for (const isRestarted of [false, true]) {
      volumes["pve1:rpool/data"] = [];
      if (isRestarted) {
        await stage.program.stop();
        world.start(slow);
      }
      await until(world, () => false, 8 * 60_000);
      const told = (await failureOf())?.message ?? "";
      assert.match(told, /id 200 are suddenly not listed any more/, `${isRestarted}`);
      volumes["pve1:rpool/data"] = hidden;
      await until(world, () => false, 20 * 60_000);
      assert.match((await failureOf())?.message ?? "", /stand under the id 200/);
    }
    assert.deepEqual(writesOf(stage), []);
  });

  it("is made over what somebody removed: when that is asked for, or believed", async () => {
    for (const isAsked of [true, false]) {
      const stage = await openHost();
      const { world } = stage;
      await createVm(world.client, "web", declared);
      await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
      stage.proxmox.cluster.state.volumes["pve1:rpool/data"] = [];
      if (isAsked) await ask(world);
      const limitMs = isAsked ? 60_000 : 25 * 60_000;
      const isThere = await until(
        world,
        async () => isReady(await getVm(world.client, "web")),
        limitMs,
      );
      assert.ok(isThere, JSON.stringify((await getVm(world.client, "web"))?.status));
      const tookMs = world.clock.monotonicMs();
      assert.equal(tookMs >= 10 * 60_000, !isAsked, `${tookMs}`);
    }
  });

  const placements = [
    { reason: "where they are", placement: { node: "pve1" } },
    { reason: "wherever they are, if it names no node", placement: {}, node: "pve3" },
  ];
  for (const { reason, placement, node = "pve1" } of placements) {
    it(`stays stalled with adopt: Only, names them ${reason}, and says how to switch`, async () => {
      const stage = await openHost(node);
      const { world } = stage;
      const all = { adopt: true, externalId: true, storages: ["*"], networks: ["*"] };
      await configure(world, { allow: [{ namespace: "*", ...all }] });
      await createVm(world.client, "web", { ...declared, placement, adopt: "Only" });
      await until(world, () => false, longMs);
      const vm = await getVm(world.client, "web");
      assert.equal(condition(vm, "Stalled"), "True OrphanedVolumes");
      const { message = "", remedy = "" } = vm?.status?.failure ?? {};
      assert.match(message, /no machine 200 .* to adopt, only volumes/);
      for (const volume of [disk, drive]) assert.ok(message.includes(volume), message);
      assert.match(remedy, /set adopt: IfPresent/);
      assert.equal(vm?.status?.node, undefined, "what does not stand is on no node");
      assert.deepEqual(writesOf(stage), []);
      assert.equal(volumeNames(stage.proxmox).length, 2);
    });
  }
});
