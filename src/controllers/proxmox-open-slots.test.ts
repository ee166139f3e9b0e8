import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import {
  allocate,
  assertKept,
  blank,
  byHand,
  edit,
  hourMs,
  makeVm,
  minuteMs,
  pass,
  pause,
  remove,
  statusOf,
  strip,
  type Scene,
} from "./testing/volumes-by-hand.ts";
import { createVm, getVm, listClaims, until } from "./testing/world.ts";

// A person puts a volume exactly where an open operation of Berth's would: the place and Berth's
// own state prove nothing, only the end of its own task does.

const web = { namespace: "default", name: "web" };
const two = [
  { name: "root", size: "5Gi", storage: "local-zfs" },
  { name: "data", size: "6Gi", storage: "local-zfs" },
];

/** An image of 3 GiB on a disk that is to have 60: what a person attaches has 50. */
function imported(storage: string): Partial<WrittenVirtualMachineSpec> {
  return {
    source: { image: { name: "debian" } },
    disks: [{ name: "root", size: "60Gi", storage }],
    placement: { node: "pve1" },
    powerState: "Stopped",
  };
}

type IsMeant = (request: PveRequest) => boolean;

const isImport: IsMeant = ({ params }) => JSON.stringify(params ?? {}).includes("import-from");
const isCreation: IsMeant = ({ method, path }) => method === "POST" && path.endsWith("/qemu");

interface Crashing {
  readonly options: StageOptions;
  /** Set before the request is sent. */
  berth?: { crash(): void };
  isSent: boolean;
}

/** Berth dies in the moment in which the first such request has arrived. */
function crashAfter(isMeant: IsMeant): Crashing {
  const crashing: Crashing = {
    isSent: false,
    options: {
      between: async (request, send) => {
        const reply = await send(request);
        if (crashing.isSent || !isMeant(request)) return reply;
        crashing.isSent = true;
        crashing.berth?.crash();
        return reply;
      },
    },
  };
  return crashing;
}

function killWorkers({ proxmox }: SimulatedWorld, task: string, times = 1): void {
  const isStep = (step: string): boolean => task !== "qmconfig" || step === "copy begins";
  proxmox.faults.onStep({
    verdict: { kind: "kill" },
    times,
    matches: ({ name }, step) => name.startsWith(task) && isStep(step.name),
  });
}

function onlyGuest({ proxmox }: SimulatedWorld): string {
  return Object.keys(proxmox.cluster.state.guests)[0] ?? "";
}

/** A person's volume of 50 GiB, attached where the disk of Berth's would be. */
async function attach(scene: Scene, slot: string, storage = "local-zfs"): Promise<void> {
  const { id } = scene;
  if (storage === "local-zfs") {
    await edit(scene, { [slot]: await allocate(scene, `vm-${id}-rescue`) });
    return;
  }
  const filename = `vm-${id}-rescue.raw`;
  await byHand(scene, ["POST", "storage/local/content"], { filename, size: "50G", vmid: id });
  await edit(scene, { [slot]: `local:${id}/${filename}` });
}

async function demandSpared(scene: Scene): Promise<void> {
  await pass(scene.stage, 20 * minuteMs);
  const { failure } = (await statusOf(scene)) ?? {};
  assert.match(`${failure?.category}: ${failure?.message}`, /IdentityConflict: Somebody put/);
  assertKept(scene);
  await remove(scene);
  assertKept(scene);
}

describe("a volume that a person puts where an open operation would", () => {
  it("is not Berth's because the Claim is only reserved", async () => {
    const crashing = crashAfter(isCreation);
    const stage = await openProxmox("8.4", crashing.options);
    crashing.berth = stage.world.start();
    await createVm(stage.world.client, "web", blank);
    assert.ok(await until(stage.world, () => crashing.isSent, 5 * minuteMs));
    await pass(stage, 20_000);
    const scene = { stage, id: onlyGuest(stage) };
    await attach(scene, "scsi0");
    stage.world.start();
    await demandSpared(scene);
  });

  for (const storage of ["local-zfs", "local"]) {
    it(`is not Berth's after an import was killed while Berth was down: ${storage}`, async () => {
      const crashing = crashAfter(isImport);
      const stage = await openProxmox("8.4", crashing.options);
      killWorkers(stage, "qmconfig");
      crashing.berth = stage.world.start();
      await createVm(stage.world.client, "web", imported(storage));
      assert.ok(await until(stage.world, () => crashing.isSent, 5 * minuteMs));
      await pass(stage, minuteMs);
      const scene = { stage, id: onlyGuest(stage) };
      await attach(scene, "scsi0", storage);
      stage.world.start();
      await demandSpared(scene);
    });
  }

  it("is not Berth's while a request that never arrived may still take effect", async () => {
    const sent = { isLost: false };
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        if (sent.isLost || !isImport(request)) return send(request);
        sent.isLost = true;
        return { type: "lost", detail: "no reply" };
      },
    });
    stage.world.start();
    await createVm(stage.world.client, "web", imported("local-zfs"));
    assert.ok(await until(stage.world, () => sent.isLost, 5 * minuteMs));
    const scene = { stage, id: onlyGuest(stage) };
    await attach(scene, "scsi0");
    await demandSpared(scene);
  });

  it("is not Berth's after a move to another storage was killed", async () => {
    const crashing = crashAfter(({ path }) => path.endsWith("/move_disk"));
    const stage = await openProxmox("8.4", crashing.options);
    crashing.berth = stage.world.start();
    const scene = { stage, id: await makeVm(stage, { disks: two }) };
    killWorkers(stage, "qmmove");
    const disks = [two[0], { ...two[1], storage: "local" }];
    await stage.world.client.of(virtualMachineKind).patch(web, { merge: { spec: { disks } } });
    assert.ok(await until(stage.world, () => crashing.isSent, 10 * minuteMs));
    await pass(stage, minuteMs);
    await edit(scene, { delete: "scsi1" });
    await attach(scene, "scsi1", "local");
    stage.world.start();
    await demandSpared(scene);
  });

  it("is not Berth's after a migration, where the recorded volume is still in the VM", async () => {
    const crashing = crashAfter(({ path }) => path.endsWith("/migrate"));
    const stage = await openProxmox("8.4", crashing.options);
    crashing.berth = stage.world.start();
    const scene = { stage, id: await makeVm(stage, { disks: two }) };
    const placement = { node: "pve2", mode: "Enforce" as const };
    await stage.world.client.of(virtualMachineKind).patch(web, { merge: { spec: { placement } } });
    assert.ok(await until(stage.world, () => crashing.isSent, hourMs));
    await pass(stage, 5 * minuteMs);
    exchange(scene, "pve2");
    stage.world.start();
    await pass(stage, 20 * minuteMs);
    assert.equal((await statusOf(scene))?.failure?.category, "IdentityConflict");
    await remove(scene);
    assertKept(scene, 7);
  });

  it("does not go with a VM whose object is gone and that had no disk yet", async () => {
    const stage = await openProxmox("8.4");
    const orphans = { policy: "DeleteOwned" as const, graceSeconds: 600, sweepSeconds: 60 };
    const merge = { spec: { orphans } };
    await stage.world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    killWorkers(stage, "qmconfig", Infinity);
    stage.world.start();
    await createVm(stage.world.client, "web", imported("local"));
    const hasFailed = async () =>
      (await getVm(stage.world.client, "web"))?.status?.failure !== undefined;
    assert.ok(await until(stage.world, hasFailed, 5 * minuteMs));
    const scene = { stage, id: onlyGuest(stage) };
    await strip(scene);
    await attach(scene, "scsi0");
    await pass(stage, 2 * hourMs);
    assertKept(scene);
  });
});

/** A person takes `data` off and puts a volume of the same size there, on another node. */
function exchange({ stage, id }: Scene, node: string): void {
  const { guests, volumes } = stage.proxmox.cluster.state;
  const guest = guests[id];
  const own = /^scsi1: local-zfs:([^,\n]+)(.*)$/m.exec(guest?.text ?? "");
  assert.ok(guest !== undefined && own !== null);
  const place = Object.keys(volumes).find((one) => one.startsWith(`${node}:rpool`)) ?? "";
  const row = volumes[place]?.find(({ name }) => name === own[1]);
  assert.ok(row !== undefined, Object.keys(volumes).join(" "));
  // The configuration tells the disk's size; on the storage it differs from that of Berth's.
  volumes[place]?.push({ ...row, name: `vm-${id}-mine`, sizeBytes: 7 * 1024 ** 3 });
  const mine = `scsi1: local-zfs:vm-${id}-mine${own[2]}\nunused0: local-zfs:${own[1]}`;
  guests[id] = { ...guest, text: guest.text.replace(own[0], mine) };
}

describe("a Claim that somebody deleted", () => {
  it("is written again from the marker, and proves no disk", async () => {
    const stage = await openProxmox("8.4");
    stage.world.start();
    const scene = { stage, id: await makeVm(stage, { disks: two }) };
    await pause(scene, "true");
    await edit(scene, { delete: "scsi1" });
    await attach(scene, "scsi1");
    await pause(scene, null);
    await pass(stage, 15 * minuteMs);
    const [claim] = await listClaims(stage.world.client);
    await stage.world.client.of(claimKind).delete({ name: claim?.metadata.name ?? "" });
    await pass(stage, 30 * minuteMs);
    const [again] = await listClaims(stage.world.client);
    const proofs = (again?.spec.volumes ?? []).map(({ proof }) => proof);
    assert.ok(!proofs.includes("Config"), proofs.join());
    await remove(scene);
    assertKept(scene);
  });
});
