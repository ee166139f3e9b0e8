import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind } from "../api/index.ts";
import {
  allocate,
  assertKept,
  blank,
  boundClaim,
  byHand,
  configOf,
  destroyDrive,
  edit,
  hourMs,
  minuteMs,
  pass,
  pause,
  remove,
  setUp,
  statusOf,
  strip,
  volumeAt,
  type Scene,
} from "./testing/volumes-by-hand.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const uefi = { firmware: { type: "UEFI", tpm: "V2.0" } } as const;

describe("a person's volume that got the free name of a firmware or TPM volume", () => {
  for (const slot of ["efidisk0", "tpmstate0"]) {
    it(`is not destroyed with the VM: ${slot}`, async () => {
      const here = await setUp(uefi);
      const name = volumeAt(here, slot);
      await destroyDrive(here, slot);
      await edit(here, { scsi9: "local-zfs:50" });
      assert.equal(volumeAt(here, "scsi9"), name);
      await pass(here.stage, 20 * minuteMs);
      const known = (await boundClaim(here)).volumes?.find(({ id }) => id === name);
      assert.ok(Number(known?.size ?? 0) < 1024 ** 3, "the recorded size is the evidence");
      await remove(here);
      assertKept(here);
    });
  }

  it("is not destroyed while nothing refers to it", async () => {
    const here = await setUp({ ...uefi, driftPolicy: "Warn" });
    const name = volumeAt(here, "efidisk0")?.split(":")[1] ?? "";
    await destroyDrive(here, "efidisk0");
    await allocate(here, name);
    await pass(here.stage, 20 * minuteMs);
    await remove(here);
    assertKept(here);
  });

  it("is not destroyed where the TPM state was moved to another storage by hand", async () => {
    const here = await setUp(uefi);
    const { id } = here;
    await pause(here, "true");
    const move = { disk: "tpmstate0", storage: "local", delete: "1" };
    await byHand(here, ["POST", `qemu/${id}/move_disk`], move);
    await edit(here, { scsi9: "local-zfs:50" });
    await pause(here, null);
    await pass(here.stage, 20 * minuteMs);
    await remove(here);
    assertKept(here);
  });

  it("is not destroyed by a policy", async () => {
    const here = await setUp(uefi);
    const { client } = here.stage.world;
    const orphans = { policy: "DeleteOwned", graceSeconds: 60, sweepSeconds: 60 };
    await client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec: { orphans } } });
    for (const other of ["a", "b", "c"]) await createVm(client, other, blank);
    const isThere = async (): Promise<boolean> => isReady(await getVm(client, "c"));
    assert.ok(await until(here.stage.world, isThere, hourMs));
    await destroyDrive(here, "efidisk0");
    await edit(here, { scsi9: "local-zfs:50" });
    await pass(here.stage, minuteMs);
    await strip(here);
    await pass(here.stage, 15 * minuteMs);
    assertKept(here);
  });
});

describe("a person's firmware or TPM volume", () => {
  const drives = [
    { slot: "tpmstate0", text: "local-zfs:1,version=v2.0" },
    { slot: "efidisk0", text: "local-zfs:1,efitype=4m" },
  ];
  for (const { slot, text } of drives) {
    it(`is reported, and outlives a VM whose spec has none: ${slot}`, async () => {
      const here = await setUp();
      const { stage } = here;
      await edit(here, { [slot]: text });
      const volume = volumeAt(here, slot) ?? "";
      const theirs = rowOf(here, volume);
      await pass(stage, 20 * minuteMs);
      const { undeclared = [] } = (await statusOf(here)) ?? {};
      assert.deepEqual(
        undeclared.map(({ device, detail }) => [device, detail]),
        [[slot, volume]],
      );
      const status = await remove(here);
      assert.ok(rows(here).includes(theirs), "it is destroyed");
      if (status !== undefined) assert.ok(JSON.stringify(status).includes(volume));
    });
  }

  it("is transferred to a disk-holder VM where the server can move it", async () => {
    const here = await setUp();
    await edit(here, { efidisk0: await allocate(here, `vm-${here.id}-windows`) });
    await pass(here.stage, 20 * minuteMs);
    assert.equal(await remove(here), undefined);
    assertKept(here);
  });
});

function rows({ stage }: Scene): Row[] {
  return Object.values(stage.proxmox.cluster.state.volumes).flat();
}

type Row = Scene["stage"]["proxmox"]["cluster"]["state"]["volumes"][string][number];

function rowOf(scene: Scene, volume: string): Row {
  const row = rows(scene).find(({ name }) => volume === `local-zfs:${name}`);
  assert.ok(row);
  return row;
}

describe("a person's disk with the name of saved memory or of a cloud-init drive", () => {
  for (const powerState of ["Running", "Stopped"] as const) {
    it(`is not taken off a declared VM, and outlives it: ${powerState}`, async () => {
      const here = await setUp({ powerState });
      const { stage, id } = here;
      const archive = await allocate(here, `vm-${id}-state-archive`);
      await edit(here, { scsi9: archive });
      await pass(stage, 20 * minuteMs);
      assert.equal(volumeAt(here, "scsi9"), archive, configOf(stage, id));
      await byHand(here, [
        "POST",
        `qemu/${id}/status/${powerState === "Running" ? "stop" : "start"}`,
      ]);
      await pass(stage, 20 * minuteMs);
      assert.equal(volumeAt(here, "scsi9"), archive, configOf(stage, id));
      await remove(here);
      assertKept(here);
    });
  }

  it("is a disk, and no cloud-init drive", async () => {
    const here = await setUp();
    const { id } = here;
    await edit(here, { scsi9: await allocate(here, `vm-${id}-cloudinit`) });
    await pass(here.stage, minuteMs);
    await remove(here);
    assertKept(here);
  });
});
