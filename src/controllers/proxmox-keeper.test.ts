import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import { releases } from "../sim/index.ts";
import {
  data,
  guests,
  hasKeeper,
  keeper,
  remove,
  root,
  spec,
  stand,
  volumes,
} from "./testing/keeping.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const web = { namespace: "default", name: "web" };

/** What a person does to a machine beside Berth, and the time that it takes. */
async function byHand(
  stage: SimulatedWorld,
  [method, path]: readonly ["POST" | "DELETE", string],
  params: Record<string, string> = {},
): Promise<void> {
  const done = stage.byHand({ method, path: `/nodes/pve1/qemu/${path}`, params });
  await until(stage.world, () => false, 10_000);
  await done;
}

/** What the one Claim of a machine says of its disks, when nothing is left to do with a keeper. */
async function claimed({ world }: SimulatedWorld): Promise<string[] | undefined> {
  const claims = await listClaims(world.client);
  const mine = claims.find(({ spec: { state } }) => state === "Bound")?.spec;
  assert.equal(mine?.keeper, undefined);
  return mine?.volumes?.map(({ disk, onDelete }) => `${disk} ${onDelete}`).toSorted();
}

for (const release of releases) {
  describe(`disks that outlive their machine, on Proxmox VE ${release}`, () => {
    it("go to a keeper without power, and come back to an object of the same name", async () => {
      const stage = await openProxmox(release);
      stage.world.start();
      const first = await stand(stage);
      assert.equal(volumes(stage).length, 2);
      await remove(stage);
      const kept = await keeper(stage);
      assert.deepEqual(
        kept.volumes?.map(({ disk }) => disk),
        ["data"],
      );
      assert.deepEqual(volumes(stage), [`vm-${kept.externalId}-disk-0`]);
      const lines = guests(stage).get(kept.externalId) ?? {};
      assert.match(lines["scsi1"] ?? lines["scsi0"] ?? "", /vm-\d+-disk-0,.*size=2G/);
      assert.equal(lines["onboot"], "0");
      assert.equal(guests(stage).has(first), false);
      const asked = stage.requests.map(({ method, path }) => `${method} ${path}`);
      const starts = asked.filter((one) => one.includes(`/${kept.externalId}/status/start`));
      assert.deepEqual(starts, []);
      const second = await stand(stage);
      assert.equal(guests(stage).has(kept.externalId), false);
      assert.deepEqual(
        volumes(stage).toSorted(),
        [0, 1].map((number) => `vm-${second}-disk-${number}`),
      );
      assert.equal((guests(stage).get(second)?.["scsi1"] ?? "").includes("size=2G"), true);
      assert.deepEqual(await claimed(stage), ["data Retain", "root Delete"]);
    });
  });
}

describe("disks that have to stay", () => {
  it("are kept too where no spec ever named them", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const id = await stand(stage, { disks: [root], powerState: "Stopped" });
    await byHand(stage, ["POST", `${id}/config`], { scsi7: "local-zfs:1" });
    await remove(stage);
    const kept = await keeper(stage);
    assert.deepEqual(
      kept.volumes?.map(({ disk }) => disk),
      ["kept-1"],
    );
    assert.match(guests(stage).get(kept.externalId)?.["scsi0"] ?? "", /size=1G/);
  });

  it("come to any object of the namespace that takes them by their volume", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    await stand(stage);
    await remove(stage);
    const kept = await keeper(stage);
    const diskId = kept.volumes?.[0]?.id ?? "";
    const source = { importedDisk: { disk: "old", diskId, mode: "Take", from: "manual" } } as const;
    const disks = [{ name: "old", size: "2Gi", storage: "local-zfs" }];
    await createVm(world.client, "other", { ...spec, source, disks });
    const isThere = await until(world, async () => {
      return isReady(await getVm(world.client, "other")) && !(await hasKeeper(stage));
    });
    const vm = await getVm(world.client, "other");
    assert.ok(isThere, JSON.stringify(vm?.status));
    assert.deepEqual(volumes(stage), [`vm-${vm?.status?.externalId}-disk-0`]);
    assert.equal(guests(stage).has(kept.externalId), false);
  });

  it("come from another node with their keeper, where the new machine has to be there", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const placement = { node: "pve1" };
    await stand(stage, { placement });
    await remove(stage);
    const id = await stand(stage, { placement: { node: "pve2" } });
    assert.equal(stage.proxmox.cluster.nodeOfGuest(Number(id)), "pve2");
    assert.equal(volumes(stage).length, 2);
    assert.match(guests(stage).get(id)?.["scsi1"] ?? "", /size=2G/);
  });

  it("stop the deletion where the server cannot move them, and are named", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    const id = await stand(stage, { powerState: "Stopped" });
    await byHand(stage, ["POST", `${id}/snapshot`], { snapname: "before" });
    await world.client.of(virtualMachineKind).delete(web);
    const isStopped = await until(world, async () => {
      return (await getVm(world.client, "web"))?.status?.failure?.category === "OrphanedVolumes";
    });
    const status = (await getVm(world.client, "web"))?.status;
    assert.ok(isStopped, JSON.stringify(status));
    assert.match(status?.failure?.message ?? "", /vm-\d+-disk-1 has to stay/);
    assert.match(status?.failure?.remedy ?? "", /qm listsnapshot/);
    assert.equal(volumes(stage).length, 2);
    await byHand(stage, ["DELETE", `${id}/snapshot/before`]);
    const isGone = await until(world, async () => {
      return (await getVm(world.client, "web")) === undefined;
    });
    assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
    assert.equal(volumes(stage).length, 1);
    await keeper(stage);
  });

  it("are forgotten with their object on their way to a keeper, whose Claim is let go too", async () => {
    const line = { isCut: false };
    const stage = await openProxmox("8.4", {
      between: async (request, send) =>
        line.isCut ? { type: "lost", detail: "away" } : send(request),
    });
    const { world } = stage;
    world.start();
    await stand(stage);
    await world.client.of(virtualMachineKind).delete(web);
    assert.ok(await until(world, () => hasKeeper(stage)));
    line.isCut = true;
    const forget = { metadata: { annotations: { [annotations.forget]: "it burned down" } } };
    await world.client.of(virtualMachineKind).patch(web, { merge: forget });
    const isGone = await until(world, async () => {
      return (await getVm(world.client, "web")) === undefined;
    });
    assert.ok(isGone);
    const claims = await listClaims(world.client);
    assert.deepEqual(claims.map(({ spec: { role, state } }) => `${role} ${state}`).toSorted(), [
      "Keeper Released",
      "Machine Released",
    ]);
    assert.ok(claims.every(({ spec: { keeper: named } }) => named === undefined));
    assert.equal(volumes(stage).length, 2);
  });

  it("wake a machine that sleeps, so that what is in its memory reaches them", async () => {
    const stage = await openProxmox();
    stage.world.start();
    await stand(stage, { powerState: "Suspended" });
    await remove(stage);
    await keeper(stage);
    assert.equal(volumes(stage).length, 1);
  });

  it("share one keeper, whose empty places are used again", async () => {
    const stage = await openProxmox();
    stage.world.start();
    await stand(stage);
    await remove(stage);
    const first = await keeper(stage);
    await stand(stage, { disks: [root, { ...data, name: "logs" }] });
    await remove(stage);
    const second = await keeper(stage);
    assert.equal(second.externalId, first.externalId);
    assert.deepEqual(second.volumes?.map(({ disk }) => disk).toSorted(), ["data", "logs"]);
    await stand(stage, { disks: [root, data, { ...data, name: "logs" }] });
    assert.equal(volumes(stage).length, 3);
    assert.equal(guests(stage).has(first.externalId), false);
  });
});
