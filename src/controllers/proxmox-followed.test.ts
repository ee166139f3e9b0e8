import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import {
  allocate,
  assertKept,
  blank,
  boundClaim,
  byHand,
  configOf,
  destroyDrive,
  edit,
  makeVm,
  minuteMs,
  pass,
  pause,
  remove,
  setUp,
  statusOf,
  volumeAt,
  type Scene,
} from "./testing/volumes-by-hand.ts";
import { eventsOf } from "./testing/events.ts";
import { createVm, listClaims } from "./testing/world.ts";

const web = { namespace: "default", name: "web" };

/** Berth's own disk is destroyed by hand, and a person's volume is in its slot. */
async function replaced(size: string): Promise<Scene> {
  const here = await setUp();
  await pause(here, "true");
  await destroyDrive(here, "scsi0");
  await edit(here, { scsi0: await allocate(here, `vm-${here.id}-restored`, size) });
  await pause(here, null);
  await pass(here.stage, 20 * minuteMs);
  return here;
}

/** What the Claim has as the disk root, and what proves it. */
async function recorded(scene: Scene): Promise<unknown[]> {
  const { volumes = [] } = await boundClaim(scene);
  return volumes.filter(({ disk }) => disk === "root").map(({ id, proof }) => [id, proof]);
}

describe("a person's volume in the slot of a disk", () => {
  it("stays a person's when Berth's own volume is removed afterwards", async () => {
    const here = await setUp();
    const { stage, id } = here;
    const own = volumeAt(here, "scsi0");
    await edit(here, { scsi0: await allocate(here, `vm-${id}-restored`, "5G") });
    await pass(stage, 10 * minuteMs);
    assert.match((await statusOf(here))?.failure?.message ?? "", /never destroys the volume/);
    const { otherVolumes = [] } = await boundClaim(here);
    assert.deepEqual(
      otherVolumes.map((other) => other.id),
      [`local-zfs:vm-${id}-restored`],
    );
    await edit(here, { delete: "unused0" });
    await pass(stage, 20 * minuteMs);
    assert.deepEqual(await recorded(here), [[own, "Named"]]);
    assert.equal((await statusOf(here))?.failure?.category, "IdentityConflict");
    assert.equal(await remove(here), undefined);
    assertKept(here, 5);
  });

  it("is not taken for the renamed disk where it is larger", async () => {
    const here = await replaced("50G");
    assert.equal((await statusOf(here))?.failure?.category, "IdentityConflict");
    assert.equal(await remove(here), undefined);
    assertKept(here);
  });
});

describe("a disk that somebody renamed or replaced by one of its size", () => {
  it("is used, and outlives its VM in a disk-holder VM, again and again", async () => {
    const here = await replaced("5G");
    const { stage, id } = here;
    assert.deepEqual(await recorded(here), [[`local-zfs:vm-${id}-restored`, "Followed"]]);
    assert.equal((await statusOf(here))?.failure, undefined);
    assert.equal(await remove(here), undefined);
    assertKept(here, 5);
    const told = (await eventsOf(stage.world.client)).map(({ reason }) => reason);
    assert.ok(told.includes("VolumesStay"), told.join());
    const again = { stage, id: await makeVm(stage) };
    assert.equal((await recorded(again)).length, 1);
    assert.match(JSON.stringify(await recorded(again)), /Followed/);
    assert.equal(await remove(again), undefined);
    assertKept(here, 5);
  });

  it("is detached and not destroyed where its entry says Absent", async () => {
    const here = await replaced("5G");
    const { stage, id } = here;
    const disks = [{ name: "root", state: "Absent", onDelete: "Delete" }];
    const vms = stage.world.client.of(virtualMachineKind);
    await vms.patch(web, { merge: { spec: { disks } } });
    await pass(stage, 10 * minuteMs);
    assert.equal(volumeAt(here, "scsi0"), undefined);
    assert.match((await statusOf(here))?.failure?.message ?? "", /does not destroy its volume/);
    assertKept(here, 5);
    await edit(here, { delete: "unused0" });
    await pass(stage, 10 * minuteMs);
    assert.equal((await statusOf(here))?.failure, undefined, configOf(stage, id));
    assert.deepEqual(await recorded(here), []);
  });
});

describe("a disk in a disk-holder VM that somebody replaced", () => {
  const root = { name: "root", size: "3Gi", storage: "local-zfs" };
  const data = { name: "data", size: "2Gi", storage: "local-zfs", onDelete: "Retain" } as const;

  /** The disk data is removed by hand from the disk-holder VM, and its name is used again. */
  async function reused(): Promise<Scene> {
    const here = await setUp({ disks: [root, data] });
    const { stage } = here;
    assert.equal(await remove(here), undefined);
    const claims = await listClaims(stage.world.client);
    const holder = claims.find(({ spec }) => spec.role === "DiskHolder")?.spec.externalId ?? "";
    const [, slot = ""] = /^(scsi\d+): /m.exec(configOf(stage, holder)) ?? [];
    const at = { stage, id: holder };
    const before = volumeAt(at, slot);
    await destroyDrive(at, slot);
    await byHand(at, ["POST", `qemu/${holder}/config`], { [slot]: "local-zfs:50" });
    assert.equal(volumeAt(at, slot), before);
    return at;
  }

  it("is not taken back", async () => {
    const { stage, id } = await reused();
    await createVm(stage.world.client, "web", { ...blank, disks: [root, data] });
    await pass(stage, 20 * minuteMs);
    const status = await statusOf({ stage, id });
    assert.match(status?.failure?.remedy ?? "", /declare exactly its size/, JSON.stringify(status));
    assert.equal(await remove({ stage, id }), undefined);
    assertKept({ stage });
  });

  it("is used and never destroyed where the spec declares exactly its size", async () => {
    const { stage } = await reused();
    const larger = { ...data, size: "50Gi", onDelete: "Delete" } as const;
    const id = await makeVm(stage, { disks: [root, larger] });
    assert.equal(await remove({ stage, id }), undefined);
    assertKept({ stage });
  });
});
