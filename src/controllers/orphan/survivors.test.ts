import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../../api/builtin/index.ts";
import { claimKind, virtualMachineKind } from "../../api/index.ts";
import { formatMark } from "../../hypervisor/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { getVm, listClaims, until } from "../testing/world.ts";
import {
  configure,
  decide,
  leaveVolume,
  listOrphans,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  volumeNames,
} from "./testing.ts";

// What survives when the kinds themselves are deleted is proven on a real API server, in
// test/real/kube-apiserver.test.ts: there alone a kind can be.

/** A Berth that deletes what is its own: whatever it leaves alone, it leaves alone. */
async function openGreedy(): Promise<SimulatedWorld> {
  const stage = await openProxmox();
  await configure(stage.world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
  return stage;
}

function textOf({ proxmox }: SimulatedWorld, id: string): string | undefined {
  return proxmox.cluster.state.guests[id]?.text;
}

function writesTo({ requests }: SimulatedWorld, id: string): string[] {
  const own = requests.filter(({ method, path }) => method !== "GET" && path.includes(id));
  return own.map(({ method, path }) => `${method} ${path}`);
}

const uuid = "00000000-0000-4000-8000-00000000f00d";

function markedBy(installation: string, id: string): string {
  const mark = formatMark({
    state: "Owned",
    installation,
    owner: { namespace: "default", name: "web" },
    identity: uuid,
    externalId: id,
    disks: {},
    networks: {},
  });
  const notes = mark.replaceAll(/[%:#]/g, (character) => encodeURIComponent(character));
  return `#${notes}\nname: web\nmemory: 512\nsmbios1: uuid=${uuid}\n`;
}

describe("what is not ours survives every sweep", () => {
  it("a stranger's stopped machine that has the name of our object", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    const stranger = `name: web\nmemory: 512\nscsi0: local-zfs:vm-500-disk-0\nsmbios1: uuid=${uuid}\n`;
    proxmox.writeGuestFile("pve1", 500, stranger);
    leaveVolume(proxmox, "vm-500-disk-0");
    world.start(slow);
    await ready(stage, "web", { powerState: "Stopped" });
    await until(world, () => false, longMs);
    assert.equal(textOf(stage, "500"), stranger);
    assert.ok(volumeNames(proxmox).includes("vm-500-disk-0"));
    assert.deepEqual(await listOrphans(world), []);
    assert.deepEqual(writesTo(stage, "500"), []);
  });

  it("the first-boot disc in the drive of a machine that was let go, until it is ejected", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    world.start(slow);
    const userData = { secretRef: { name: "first-boot" } };
    await world.client.of(secretResource).create({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: "default", name: "first-boot" },
      data: { userData: Buffer.from("#cloud-config\n").toString("base64") },
    });
    const stopped = { powerState: "Stopped", deletionPolicy: "Retain" } as const;
    const id = await ready(stage, "web", { ...stopped, cloudInit: { userData } });
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
    assert.ok(await until(world, async () => (await getVm(world.client, "web")) === undefined));
    await until(world, () => false, longMs);
    const discs = (): object[] => {
      const all = Object.values(proxmox.cluster.state.volumes).flat();
      return all.filter(({ name }) => name.includes("berth-seed"));
    };
    assert.equal(discs().length, 1);
    assert.deepEqual(await listOrphans(world), []);
    const node = proxmox.cluster.nodeOfGuest(Number(id)) ?? "";
    const ejected = (textOf(stage, id) ?? "").replace(/^ide2: .*$/m, "ide2: none,media=cdrom");
    proxmox.writeGuestFile(node, Number(id), ejected);
    assert.ok(await until(world, () => discs().length === 0, longMs));
    assert.equal(textOf(stage, id), ejected, "the machine is as it was");
  });

  it("a machine that was let go, whose object is deleted", async () => {
    const stage = await openGreedy();
    const { world } = stage;
    world.start(slow);
    const id = await ready(stage, "web", { powerState: "Stopped", deletionPolicy: "Retain" });
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
    await until(world, async () => (await getVm(world.client, "web")) === undefined);
    const text = textOf(stage, id);
    await until(world, () => false, longMs);
    assert.ok(text !== undefined && textOf(stage, id) === text);
    assert.deepEqual(await listOrphans(world), []);
  });

  it("another installation's machine", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    const theirs = markedBy("00000000-0000-4000-8000-00000000beef", "501");
    proxmox.writeGuestFile("pve1", 501, theirs);
    world.start(slow);
    await until(world, () => false, longMs);
    assert.equal(textOf(stage, "501"), theirs);
    assert.deepEqual(await listOrphans(world), []);
    assert.deepEqual(writesTo(stage, "501"), []);
  });

  it("a copy of our machine, mark and all, under another id", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web", { powerState: "Stopped" });
    const copy = (textOf(stage, id) ?? "").replace(/uuid=[0-9a-f-]+/, `uuid=${uuid}`);
    proxmox.writeGuestFile("pve1", 502, copy);
    await until(world, () => false, longMs);
    assert.equal(textOf(stage, "502"), copy);
    assert.deepEqual(await listOrphans(world), []);
  });

  it("another cluster's disk on a shared storage: it is named, and only a person can say go", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    const backing = "shared:192.0.2.2:/export/shared";
    leaveVolume(proxmox, "700/vm-700-disk-0.raw", { backing });
    world.start(slow);
    await until(world, () => false, longMs);
    const [orphan, ...others] = await listOrphans(world);
    assert.ok(orphan);
    assert.deepEqual(others, []);
    assert.equal(orphan.status?.ownership, "Unattributed");
    assert.match((orphan.status?.evidence ?? []).join(" "), /another cluster may be using it/);
    assert.equal(volumeNames(proxmox).length, 1);
    // By mistake it cannot be decided: the id has to be typed.
    const typed = decide(world, orphan, { decision: "Destroy", confirm: "shared:something" });
    await assert.rejects(typed, /confirm/);
    assert.equal(volumeNames(proxmox).length, 1);
  });

  it("copies that were cut off where nobody can tell whose they are: all of them are named", async () => {
    const stage = await openGreedy();
    const { world, proxmox } = stage;
    world.start(slow);
    const placement = { node: "pve1" };
    const id = await ready(stage, "web", { powerState: "Stopped", placement });
    leaveVolume(proxmox, `${id}/vm-${id}-disk-7.raw`, {
      backing: "shared:192.0.2.2:/export/shared",
    });
    leaveVolume(proxmox, `vm-${id}-disk-8`, { backing: "pve3:rpool/data" });
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
    const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
    assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
    await until(world, () => false, longMs);
    const names = [`${id}/vm-${id}-disk-7.raw`, `vm-${id}-disk-8`];
    assert.deepEqual(volumeNames(proxmox).toSorted(), names.toSorted());
    const found = (await listOrphans(world)).map(({ spec, status }) => {
      return `${spec.externalId} on ${status?.node ?? ""}: ${status?.ownership ?? ""}`;
    });
    assert.equal(found.length, 2, found.join());
    assert.ok(found.includes(`local-zfs:vm-${id}-disk-8 on pve3: Unattributed`), found.join());
    assert.ok(
      found.some((one) => one.startsWith(`shared:${id}/vm-${id}-disk-7.raw`)),
      found.join(),
    );
  });

  it("machines whose Claims and objects an old backup did not know", async () => {
    const stage = await openGreedy();
    const { world } = stage;
    const before = world.start(slow);
    const ids = [await ready(stage, "a"), await ready(stage, "b", { powerState: "Stopped" })];
    await before.stop();
    await forgetAll(stage);
    const texts = ids.map((id) => textOf(stage, id));
    world.start(slow);
    await until(world, () => false, longMs);
    assert.deepEqual(
      ids.map((id) => textOf(stage, id)),
      texts,
    );
    for (const id of ids) {
      const orphan = await orphanOf(world, id);
      assert.equal(orphan?.status?.ownership, "Marked");
      assert.equal(reasonOf(orphan), "DecisionNeeded");
    }
  });
});

/** As a folder restored from before they were declared: neither objects nor Claims. */
async function forgetAll({ world }: SimulatedWorld): Promise<void> {
  const vms = world.client.of(virtualMachineKind);
  for (const name of ["a", "b"]) {
    await vms.patch({ namespace: "default", name }, { merge: { metadata: { finalizers: null } } });
    await vms.delete({ namespace: "default", name });
  }
  for (const { metadata } of await listClaims(world.client)) {
    await world.client.of(claimKind).delete({ name: metadata.name ?? "" });
  }
}
