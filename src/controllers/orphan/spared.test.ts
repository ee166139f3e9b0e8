import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../../api/builtin/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "../testing/world.ts";
import {
  configure,
  decide,
  disks,
  gib,
  leaveVolume,
  listOrphans,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const stopped = { powerState: "Stopped" } as const;
const disk = "local-zfs:vm-200-disk-0";
const drive = "local-zfs:vm-200-cloudinit";

/** A Berth that deletes what is its own, with enough machines that no loss looks like many. */
async function openGreedy(): Promise<SimulatedWorld> {
  const stage = await openProxmox();
  await configure(stage.world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
  stage.world.start(slow);
  for (const name of ["b", "c", "d"]) await ready(stage, name, stopped);
  return stage;
}

describe("a volume that a declared machine takes as its disk", () => {
  const source = { importedDisk: { diskId: disk, from: "manual", mode: "Take" } } as const;
  const taking = { disks, externalId: "200", placement: { node: "pve1" }, source };

  it("is no orphan while the machine waits for what else stands under its id", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    leaveVolume(proxmox, "vm-200-disk-0", { sizeBytes: 10 * gib });
    leaveVolume(proxmox, "vm-200-cloudinit");
    world.start(slow);
    await createVm(world.client, "web", taking);
    assert.deepEqual((await waitForOrphan(world, drive)).status?.blocks, ["default/web"]);
    await until(world, () => false, longMs);
    assert.equal(await orphanOf(world, disk), undefined);
  });

  it("is not destroyed on a word that was given before it was declared", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    leaveVolume(proxmox, "vm-200-disk-0", { sizeBytes: 10 * gib });
    world.start(slow);
    const orphan = await waitForOrphan(world, disk);
    await createVm(world.client, "web", taking);
    await decide(world, orphan, { decision: "Destroy" });
    const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
    const vm = await getVm(world.client, "web");
    assert.ok(isThere, JSON.stringify(vm?.status));
    assert.deepEqual(
      vm?.status?.disks?.map(({ volume }) => volume),
      [disk],
    );
    await until(world, async () => (await orphanOf(world, disk)) === undefined, longMs);
    assert.deepEqual(await listOrphans(world), []);
  });
});

describe("the first-boot disc of a machine that runs and has lost its object", () => {
  for (const storage of ["local", "shared"]) {
    it(`stays in its drive, on the storage ${storage}`, async () => {
      const stage = await openGreedy();
      const { world, proxmox } = stage;
      await world.client.of(secretResource).create({
        apiVersion: "v1",
        kind: "Secret",
        metadata: { namespace: "default", name: "first-boot" },
        data: { userData: Buffer.from("#cloud-config\n").toString("base64") },
      });
      const cloudInit = { userData: { secretRef: { name: "first-boot" } }, storage };
      const id = await ready(stage, "web", { placement: { node: "pve2" }, cloudInit });
      const discs = (): string[] => {
        const all = Object.values(proxmox.cluster.state.volumes).flat();
        return all.map(({ name }) => name).filter((name) => name.includes("berth-seed"));
      };
      assert.equal(discs().length, 1);
      await strip(world, "web");
      await waitForOrphan(world, id);
      await until(world, () => false, longMs);
      assert.equal(discs().length, 1);
      const kinds = (await listOrphans(world)).map(({ spec }) => spec.kind);
      assert.deepEqual(kinds, ["Machine"], "it goes with its machine, and is reported with it");
      // Once the machine is gone, nobody needs it, and it is found and removed.
      proxmox.killMachine(Number(id));
      assert.ok(await until(world, () => discs().length === 0, 2 * longMs));
    });
  }
});

describe("a volume of ours whose machine is gone", () => {
  it("stays while a snapshot of another machine refers to it", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    const id = await ready(stage, "web", stopped);
    const volume = `local-zfs:vm-${id}-disk-0`;
    await strip(world, "web");
    const node = proxmox.cluster.state.guests[id]?.node ?? "";
    proxmox.removeGuestFile(Number(id));
    const text = `name: s\nparent: one\n\n[one]\nscsi0: ${volume},size=10G\nsnaptime: 1700000000\n`;
    proxmox.writeGuestFile(node, 300, text);
    const orphan = await waitForOrphan(world, volume);
    const isRefused = await until(
      world,
      async () => {
        const { failure } = (await orphanOf(world, volume))?.status ?? {};
        return /VM 300 uses/.test(failure?.message ?? "");
      },
      longMs,
    );
    assert.ok(isRefused, JSON.stringify((await orphanOf(world, volume))?.status));
    assert.ok(volumeNames(proxmox).includes(`vm-${id}-disk-0`));
    proxmox.removeGuestFile(300);
    await decide(world, orphan, { decision: "Destroy" });
    const isGone = (): boolean => !volumeNames(proxmox).includes(`vm-${id}-disk-0`);
    assert.ok(await until(world, isGone, longMs));
  });
});

describe("what a machine frees", () => {
  it("does not count a volume of another id that it holds", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web", stopped);
    const guest = proxmox.cluster.state.guests[id];
    assert.ok(guest);
    const { node, text } = guest;
    leaveVolume(proxmox, "vm-900-disk-0", {
      backing: `${node}:rpool/data`,
      sizeBytes: 100 * gib,
    });
    const held = `${text}scsi5: local-zfs:vm-900-disk-0,size=100G\n`;
    proxmox.writeGuestFile(node, Number(id), held);
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    assert.equal(orphan.status?.size, String(10 * gib));
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, async () => reasonOf(await orphanOf(world, id)) === "Gone");
    assert.equal((await orphanOf(world, id))?.status?.reclaimed, String(10 * gib));
    assert.deepEqual(volumeNames(proxmox), ["vm-900-disk-0"]);
  });
});
