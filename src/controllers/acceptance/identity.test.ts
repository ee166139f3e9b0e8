import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { orphanKind } from "../../api/index.ts";
import { eventsOf } from "../testing/events.ts";
import { condition, listClaims } from "../testing/world.ts";
import { idOf, root, Stage } from "./testing.ts";

/** A machine that somebody else made, with a disk. */
function strangersFile(id: string, name: string): string {
  return (
    `cores: 1\nmemory: 512\nname: ${name}\nscsi0: local-zfs:vm-${id}-disk-0,size=1G\n` +
    "smbios1: uuid=00000000-0000-4000-8000-00000000beef\n"
  );
}

function addStranger({ simulated, state }: Stage, id: string, name: string): void {
  const { proxmox } = simulated;
  proxmox.writeGuestFile("pve1", Number(id), strangersFile(id, name));
  const volumes = state.volumes["pve1:rpool/data"] ?? [];
  state.volumes["pve1:rpool/data"] = volumes;
  const disk = { name: `vm-${id}-disk-0`, content: "images", format: "raw" } as const;
  volumes.push({
    ...disk,
    sizeBytes: 1024 ** 3,
    usedBytes: 1024 ** 3,
    createdMs: 0,
    vmid: Number(id),
    data: "a stranger's",
  });
}

/** Everything of a stranger, as it stands there. */
function strangersThings({ guests, state }: Stage, id: string): string {
  const volumes = Object.values(state.volumes).flat();
  return JSON.stringify([guests[id], volumes.filter(({ vmid }) => String(vmid) === id)]);
}

/** Failures in which one machine was taken for another. Each is named after the thread. */
describe("whose a machine is", () => {
  it("seed-2: a stopped stranger with our name outlives restarts, edits and the object", async () => {
    const stage = await Stage.open("9.2");
    addStranger(stage, "101", "web");
    const before = strangersThings(stage, "101");
    await stage.declare("web");
    for (const call of ["begin create", "begin addDisk", "begin powerOn"]) {
      await stage.until(() => stage.berth.calls.includes(call));
      stage.restart();
    }
    const vm = await stage.synced("web");
    assert.notEqual(idOf(vm), "101");
    await stage.edit("web", { tags: ["a"] });
    await stage.synced("web");
    await stage.remove("web");
    stage.restart();
    await stage.pass(600_000);
    assert.deepEqual(Object.keys(stage.guests), ["101"]);
    assert.equal(strangersThings(stage, "101"), before);
    assert.ok(stage.writes.every((path) => !path.includes("/101")));
  });

  it("CAPMOX-856: an id that was recycled costs no stranger anything, whatever the object does", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web", { placement: { node: "pve1" } });
    const id = idOf(vm);
    const { proxmox } = stage.simulated;
    proxmox.killMachine(Number(id));
    proxmox.removeGuestFile(Number(id));
    proxmox.removeVolume("pve1", `local-zfs:vm-${id}-disk-0`);
    // Of the same name, under the same id, with a disk of the same name.
    addStranger(stage, id, "web");
    const before = strangersThings(stage, id);
    const wrong = await stage.failed("web", "IdentityConflict");
    assert.equal(condition(wrong, "Stalled"), "True IdentityConflict");
    await stage.edit("web", { powerState: "Stopped", disks: [{ ...root, size: "20Gi" }] });
    await stage.pass(120_000);
    stage.restart();
    await stage.startRemoving("web");
    await stage.pass(600_000);
    assert.equal(strangersThings(stage, id), before);
    assert.ok(await stage.vm("web"), "an absence was not proven");
    proxmox.removeGuestFile(Number(id));
    proxmox.removeVolume("pve1", `local-zfs:vm-${id}-disk-0`);
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined));
  });

  it("CAPMOX-842: of two that claim one id one gets it, and the other says whose it is", async () => {
    const stage = await Stage.open("9.2");
    await stage.declare("first", { externalId: "300" });
    await stage.declare("second", { externalId: "300" });
    const isOne = await stage.until(async () => {
      const both = [await stage.vm("first"), await stage.vm("second")];
      return both.some((vm) => condition(vm, "Ready") === "True Succeeded");
    });
    assert.ok(isOne);
    const isFirst = condition(await stage.vm("first"), "Ready").startsWith("True");
    const [winner, loser] = isFirst ? ["first", "second"] : ["second", "first"];
    const refused = await stage.failed(loser, "IdentityConflict");
    assert.match(refused.status?.failure?.message ?? "", new RegExp(`300.*${winner}`));
    assert.deepEqual(Object.keys(stage.guests), ["300"]);
    await stage.remove(winner);
    assert.equal(idOf(await stage.synced(loser)), "300");
  });

  it("CAPMOX-842: a stranger who takes the id in the last moment wedges nobody", async () => {
    const taken: string[] = [];
    const opened: { stage?: Stage } = {};
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        const isCreation = request.method === "POST" && request.path.endsWith("/qemu");
        const id = String(request.params?.["vmid"] ?? "");
        if (isCreation && taken.length === 0 && opened.stage !== undefined) {
          taken.push(id);
          addStranger(opened.stage, id, "other");
        }
        return send(request);
      },
    });
    opened.stage = stage;
    const vm = await stage.make("web");
    const [id = ""] = taken;
    assert.notEqual(idOf(vm), id);
    assert.equal(stage.guests[id]?.text, strangersFile(id, "other"));
    assert.equal(Object.keys(stage.guests).length, 2);
    await stage.remove("web");
    assert.deepEqual(Object.keys(stage.guests), [id]);
  });

  it("bpg-391: a machine that a person moved is followed, and no second one is made", async () => {
    const stage = await Stage.open("9.2");
    const disks = [{ ...root, storage: "shared" }];
    const vm = await stage.make("web", { placement: { node: "pve1" }, disks });
    const id = idOf(vm);
    const { cluster } = stage.simulated.proxmox;
    const machine = cluster.machine(Number(id));
    const writes = stage.writes.length;
    cluster.setMachine("pve1", Number(id), undefined);
    cluster.writeText("pve2", Number(id), stage.guests[id]?.text ?? "");
    cluster.setMachine("pve2", Number(id), machine);
    const moved = await stage.when("web", ({ status }) => status?.node === "pve2");
    assert.equal(condition(moved, "Ready"), "True Succeeded");
    await stage.pass(600_000);
    assert.deepEqual(stage.writes.slice(writes), []);
    assert.deepEqual(Object.keys(stage.guests), [id]);
    await stage.edit("web", { tags: ["moved"] });
    const changed = await stage.synced("web");
    assert.equal(stage.config(changed)["tags"], "moved");
    const [claim] = await listClaims(stage.simulated.world.client);
    assert.equal(claim?.spec.node, "pve2");
    await stage.remove("web");
    assert.deepEqual(stage.volumes, []);
  });

  it("Tel-546: a machine that a person deleted is Missing, made anew only if told so, and no obstacle", async () => {
    const stage = await Stage.open("9.2");
    const first = await stage.make("web");
    const second = await stage.make("db");
    for (const vm of [first, second]) deleteByHand(stage, idOf(vm), vm.status?.node ?? "");
    const missing = await stage.failed("web", "Missing");
    assert.equal(condition(missing, "Stalled"), "True Missing");
    const writes = stage.writes.length;
    await stage.pass(600_000);
    assert.equal(stage.writes.length, writes);
    await stage.edit("web", { onMissing: "Recreate" });
    await stage.synced("web");
    assert.equal(Object.keys(stage.guests).length, 1);
    await stage.remove("db");
    await stage.remove("web");
    assert.deepEqual(stage.volumes, []);
  });

  it("volumes that a moved machine left on another node are named before it is made anew", async () => {
    const stage = await Stage.open("9.2");
    const { proxmox } = stage.simulated;
    const id = await loseMoved(stage);
    await stage.edit("web", { onMissing: "Recreate" });
    const stopped = await stage.failed("web", "OrphanedVolumes");
    const { message = "" } = stopped.status?.failure ?? {};
    assert.match(message, new RegExp(`local-zfs:vm-${id}-disk-0 on the node pve2`));
    assert.deepEqual(Object.keys(stage.guests), []);
    proxmox.removeVolume("pve2", `local-zfs:vm-${id}-disk-0`);
    await stage.synced("web");
    assert.equal(Object.keys(stage.guests).length, 1);
  });

  it("volumes that a moved machine left on another node are named when its object goes", async () => {
    const stage = await Stage.open("9.2");
    const id = await loseMoved(stage);
    const { client } = stage.simulated.world;
    await stage.remove("web");
    const told = (await eventsOf(client)).filter(({ reason }) => reason === "VolumesStay");
    assert.match(told[0]?.note ?? "", new RegExp(`local-zfs:vm-${id}-disk-0 on the node pve2`));
    assert.equal(stage.volumes.length, 1, "nothing proves whose it is");
    const isShown = await stage.until(async () => {
      const { items } = await client.of(orphanKind).list();
      return items.some(({ spec }) => spec.externalId === `local-zfs:vm-${id}-disk-0`);
    }, 2 * 3600_000);
    assert.ok(isShown);
  });
});

/** A machine that somebody moved to pve2 and deleted there, and whose volumes are still there. */
async function loseMoved(stage: Stage): Promise<string> {
  const id = idOf(await stage.make("web", { placement: { node: "pve1" } }));
  const { volumes } = stage.simulated.proxmox.cluster.state;
  const isHere = ({ vmid }: { vmid?: number | undefined }): boolean => vmid === Number(id);
  const moved = (volumes["pve1:rpool/data"] ?? []).filter(isHere);
  assert.ok(moved.length > 0);
  volumes["pve2:rpool/data"] = [...(volumes["pve2:rpool/data"] ?? []), ...moved];
  deleteByHand(stage, id, "pve1");
  await stage.failed("web", "Missing");
  return id;
}

function deleteByHand({ simulated, guests }: Stage, id: string, node: string): void {
  const { proxmox } = simulated;
  assert.ok(guests[id]);
  proxmox.killMachine(Number(id));
  proxmox.removeGuestFile(Number(id));
  proxmox.removeVolume(node, `local-zfs:vm-${id}-disk-0`);
}
