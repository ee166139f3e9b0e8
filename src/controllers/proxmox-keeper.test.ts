import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import { releases } from "../sim/index.ts";
import { leaveVolume } from "./orphan/testing.ts";
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

const gib = 1024 ** 3;
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

/** The same with root's own login, whose tasks are not Berth's. */
async function asRoot(
  stage: SimulatedWorld,
  path: string,
  params: Record<string, string>,
): Promise<void> {
  const done = stage.asRoot({ method: "POST", path: `/nodes/pve1/${path}`, params });
  await until(stage.world, () => false, 10_000);
  await done;
}

type Volume = SimulatedWorld["proxmox"]["cluster"]["state"]["volumes"][string][number];

function theVolume({ proxmox }: SimulatedWorld, name: RegExp, backing = "pve1:rpool/data"): Volume {
  const volume = proxmox.cluster.state.volumes[backing]?.find((one) => name.test(one.name));
  assert.ok(volume);
  return volume;
}

/** The ids in the names of all volumes. */
function ownersOf(stage: SimulatedWorld): (string | undefined)[] {
  return volumes(stage).map((name) => /^vm-(\d+)-/.exec(name)?.[1]);
}

/** Somebody gives the one volume of a VM another name, in its storage and in its configuration. */
function rename({ proxmox }: SimulatedWorld, id: string, name: string): void {
  const { volumes: backings, guests: there } = proxmox.cluster.state;
  const volume = Object.values(backings)
    .flat()
    .find(({ vmid }) => String(vmid) === id);
  const { node = "", text = "" } = there[id] ?? {};
  assert.ok(volume);
  proxmox.writeGuestFile(node, Number(id), text.replaceAll(`:${volume.name},`, `:${name},`));
  volume.name = name;
}

/** Somebody edits the configuration file of a VM. */
function editGuest({ proxmox }: SimulatedWorld, id: string, edit: (text: string) => string): void {
  const { node = "", text = "" } = proxmox.cluster.state.guests[id] ?? {};
  const edited = edit(text);
  assert.notEqual(edited, text);
  proxmox.writeGuestFile(node, Number(id), edited);
}

function lockGuest(stage: SimulatedWorld, id: string): void {
  editGuest(stage, id, (text) => `${text}lock: backup\n`);
}

function unlockGuest(stage: SimulatedWorld, id: string): void {
  editGuest(stage, id, (text) => text.replace("lock: backup\n", ""));
}

/** The category and the message of the failure of "web". */
async function failureOf({ world }: SimulatedWorld): Promise<string> {
  const { category, message } = (await getVm(world.client, "web"))?.status?.failure ?? {};
  return `${category}: ${message}`;
}

/** The same when it waits for a person. */
async function stalled(stage: SimulatedWorld): Promise<string> {
  const { world } = stage;
  const isStalled = await until(world, async () => {
    const { conditions = [] } = (await getVm(world.client, "web"))?.status ?? {};
    return conditions.some(({ type, status }) => type === "Stalled" && status === "True");
  });
  const failure = await failureOf(stage);
  assert.ok(isStalled, failure);
  return failure;
}

/** What the one Claim of a machine says of its disks, when nothing is left to do with a keeper. */
async function claimed({ world }: SimulatedWorld): Promise<string[] | undefined> {
  const claims = await listClaims(world.client);
  const mine = claims.find(({ spec: { state } }) => state === "Bound")?.spec;
  assert.equal(mine?.diskHolder, undefined);
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
      assert.deepEqual(ownersOf(stage), [second, second]);
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

  it("come back where somebody gave their volume another name meanwhile", async () => {
    const stage = await openProxmox();
    stage.world.start();
    await stand(stage);
    await remove(stage);
    const { externalId } = await keeper(stage);
    rename(stage, externalId, `vm-${externalId}-disk-7`);
    const id = await stand(stage);
    assert.deepEqual(ownersOf(stage), [id, id]);
    assert.equal(guests(stage).has(externalId), false);
    assert.deepEqual(await claimed(stage), ["data Retain", "root Delete"]);
  });

  it("are not taken back where somebody gave their name to a volume of their own", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    await stand(stage);
    await remove(stage);
    const { externalId } = await keeper(stage);
    const volume = theVolume(stage, new RegExp(`^vm-${externalId}-`));
    volume.sizeBytes += 3 * gib;
    editGuest(stage, externalId, (text) => {
      return text.replace(/^scsi\d+: ([^,\n]+).*$/m, "scsi9: $1,size=5G");
    });
    await createVm(world.client, "web", spec);
    const recorded = /^IdentityConflict: .* is not the one that was recorded for the disk data/;
    assert.match(await stalled(stage), recorded);
    await remove(stage);
    assert.equal(theVolume(stage, new RegExp(`^vm-${externalId}-`)), volume);
    assert.match(guests(stage).get(externalId)?.["scsi9"] ?? "", /size=5G/);
  });

  it("are not mistaken for a smaller volume that somebody put in their place", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    await stand(stage);
    await remove(stage);
    const { externalId, volumes: kept } = await keeper(stage);
    rename(stage, externalId, `vm-${externalId}-disk-7`);
    theVolume(stage, /disk-7$/).sizeBytes = gib;
    editGuest(stage, externalId, (text) => text.replace("size=2G", "size=1G"));
    await createVm(world.client, "web", spec);
    assert.match(await stalled(stage), /nowhere to be found/);
    await remove(stage);
    assert.deepEqual((await keeper(stage)).volumes, kept);
    assert.deepEqual(volumes(stage), [`vm-${externalId}-disk-7`]);
  });

  it("are waited for while another object takes a disk out of their keeper", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    const logs = { ...data, name: "logs" };
    await stand(stage, { disks: [root, data, logs] });
    await remove(stage);
    const { externalId, volumes: kept = [] } = await keeper(stage);
    lockGuest(stage, externalId);
    const diskId = kept.find(({ disk }) => disk === "data")?.id ?? "";
    const source = { importedDisk: { disk: "old", diskId, mode: "Take", from: "manual" } } as const;
    const disks = [{ name: "old", size: "2Gi", storage: "local-zfs" }];
    await createVm(world.client, "other", { ...spec, source, disks });
    await until(world, () => false, 60_000);
    await createVm(world.client, "web", { ...spec, disks: [root, logs] });
    await until(world, () => false, 10 * 60_000);
    const waits = /^DependencyNotReady: .* is in the disk-holder VM \d+, which another/;
    assert.match(await failureOf(stage), waits);
    unlockGuest(stage, externalId);
    const isThere = await until(world, async () => {
      const vms = await Promise.all(["other", "web"].map((name) => getVm(world.client, name)));
      return vms.every((vm) => isReady(vm)) && !(await hasKeeper(stage));
    });
    assert.ok(isThere, await failureOf(stage));
    assert.equal(volumes(stage).length, 3);
    assert.equal(guests(stage).has(externalId), false);
  });

  it("are not mistaken for a volume that somebody made under the id of the new VM", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start();
    await stand(stage);
    await remove(stage);
    const { externalId, volumes: kept = [] } = await keeper(stage);
    lockGuest(stage, externalId);
    await createVm(world.client, "web", {
      ...spec,
      disks: [root, { ...data, onDelete: "Delete" }],
    });
    await until(world, () => false, 60_000);
    const id = (await getVm(world.client, "web"))?.status?.externalId ?? "";
    const rows = proxmox.cluster.state.volumes["pve1:rpool/data"] ?? [];
    const lost = rows.findIndex(({ name }) => kept[0]?.id.endsWith(`:${name}`));
    rows.splice(lost, 1);
    leaveVolume(proxmox, `vm-${id}-rescue`, { sizeBytes: 2 * gib });
    leaveVolume(proxmox, `vm-${id}-disk-9`, { sizeBytes: 50 * gib });
    const strangers = [theVolume(stage, /rescue$/), theVolume(stage, /disk-9$/)];
    unlockGuest(stage, externalId);
    assert.match(await stalled(stage), /nowhere to be found/);
    await remove(stage);
    assert.deepEqual([theVolume(stage, /rescue$/), theVolume(stage, /disk-9$/)], strangers);
  });

  it("are not mistaken for a volume that somebody put into the keeper on their way", async () => {
    const person = { act: (): void => undefined };
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        if (!request.path.includes("/move_disk")) return send(request);
        person.act();
        return { type: "lost", detail: "cut" };
      },
    });
    const { world, proxmox } = stage;
    world.start();
    const id = await stand(stage, { powerState: "Stopped" });
    person.act = () => {
      const rows = proxmox.cluster.state.volumes["pve1:rpool/data"] ?? [];
      const lost = rows.findIndex(({ sizeBytes }) => sizeBytes === 2 * gib);
      if (lost < 0) return;
      rows.splice(lost, 1);
      editGuest(stage, id, (text) => text.replace(/^scsi1:.*\n/m, ""));
      const [holder = ""] = Object.keys(proxmox.cluster.state.guests).filter((one) => one !== id);
      leaveVolume(proxmox, `vm-${holder}-disk-9`, { sizeBytes: 50 * gib });
      const line = `scsi0: local-zfs:vm-${holder}-disk-9,size=50G\n`;
      editGuest(stage, holder, (text) => `${text}${line}`);
    };
    await world.client.of(virtualMachineKind).delete(web);
    assert.match(await stalled(stage), /has another disk data/);
    const claims = (await listClaims(world.client)).flatMap(
      ({ spec: { volumes: all = [] } }) => all,
    );
    assert.ok(!claims.some(({ id: volume }) => volume.endsWith("disk-9")), JSON.stringify(claims));
  });

  it("are not mistaken for a volume of their size that somebody made before they were sent", async () => {
    const line: { berth?: { crash(): void }; holder?: string } = {};
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        if (!request.path.endsWith("/move_disk") || line.berth === undefined) return send(request);
        line.holder = String(request.params?.["target-vmid"]);
        line.berth.crash();
        delete line.berth;
        return { type: "lost", detail: "cut" };
      },
    });
    const { world, proxmox } = stage;
    line.berth = world.start();
    const id = await stand(stage, { powerState: "Stopped" });
    await asRoot(stage, "qemu", { vmid: "900", name: "theirs" });
    await world.client.of(virtualMachineKind).delete(web);
    assert.ok(await until(world, () => line.holder !== undefined));
    const { holder = "" } = line;
    const away = { disk: "scsi1", "target-vmid": "900", "target-disk": "scsi0" };
    await asRoot(stage, `qemu/${id}/move_disk`, away);
    leaveVolume(proxmox, `vm-${holder}-disk-0`, { sizeBytes: 2 * gib });
    const theirs = theVolume(stage, new RegExp(`^vm-${holder}-disk-0$`));
    world.start();
    const failure = await stalled(stage);
    assert.match(failure, /^OrphanedVolumes: .*vm-\d+-disk-0 has its size but may be anybody's/);
    assert.match(failure, new RegExp(`root@pam moved the disk scsi1 of VM ${id} to VM 900`));
    assert.equal(guests(stage).get(holder)?.["scsi0"], undefined);
    assert.equal(theVolume(stage, new RegExp(`^vm-${holder}-disk-0$`)), theirs);
    assert.match(guests(stage).get("900")?.["scsi0"] ?? "", /size=2G/);
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

  it("come back under the name that they got when their disk-holder VM was moved", async () => {
    const stage = await openProxmox();
    const { proxmox } = stage;
    stage.world.start();
    await stand(stage, { placement: { node: "pve1" } });
    const [, disk] = stage.proxmox.cluster.state.volumes["pve1:rpool/data"] ?? [];
    assert.ok(disk);
    await remove(stage);
    const kept = await keeper(stage);
    assert.equal(disk.name, `vm-${kept.externalId}-disk-0`);
    // Somebody's own volume has its name on the other node.
    leaveVolume(proxmox, disk.name, { backing: "pve2:rpool/data" });
    const stranger = theVolume(stage, /disk-0$/, "pve2:rpool/data");
    const id = await stand(stage, { placement: { node: "pve2" } });
    assert.match(guests(stage).get(id)?.["scsi1"] ?? "", /size=2G/);
    assert.equal(theVolume(stage, /disk-0$/, "pve2:rpool/data"), stranger);
    assert.equal(volumes(stage).length, 3);
    assert.equal(guests(stage).has(kept.externalId), false);
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
    assert.match(status?.failure?.message ?? "", /vm-\d+-berth-\w+ has to stay/);
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
      "DiskHolder Released",
      "VM Released",
    ]);
    assert.ok(claims.every(({ spec: { diskHolder: named } }) => named === undefined));
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
