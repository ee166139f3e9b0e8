import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { builtinResources } from "../../src/api/builtin/index.ts";
import {
  claimKind,
  hypervisorKind,
  orphanKind,
  virtualMachineKind,
  vmImageKind,
} from "../../src/api/index.ts";
import type { WrittenVirtualMachineSpec } from "../../src/api/index.ts";
import { createVm, getVm, isReady } from "../../src/controllers/testing/world.ts";
import type { PveRequest } from "../../src/drivers/proxmox/index.ts";
import type { KeptFolder } from "./kept.ts";
import { openStage, pass, writeDatabase, type Stage } from "./stage.ts";

// Makes the kept folder of the release whose sources it lies in: see README.md beside 0.1.

const onNode = { placement: { node: "pve1" }, networks: [], guestAgent: { enabled: false } };
const root = { name: "root", size: "3Gi", storage: "local-zfs" };
const kept = { name: "data", size: "2Gi", storage: "local-zfs", onDelete: "Retain" } as const;
const blank: Partial<WrittenVirtualMachineSpec> = {
  ...onNode,
  source: { blank: {} },
  disks: [root],
};
const long = 15 * 60_000;

async function declare({ client }: Stage): Promise<void> {
  const of = (kind: string): ReturnType<typeof client.of> => {
    const resource = builtinResources.find((candidate) => candidate.kind === kind);
    assert.ok(resource);
    return client.of(resource);
  };
  for (const name of ["default", "berth-system"]) {
    await of("Namespace").create({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  await of("ConfigMap").create({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "berth-system", name: "installation" },
    data: { id: "00000000-0000-4000-8000-000000000007" },
  });
  await of("Secret").create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "berth-system", name: "model" },
    data: { tokenId: Buffer.from("t").toString("base64") },
  });
  const secretRef = { namespace: "berth-system", name: "model" };
  await client.of(hypervisorKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name: "model" },
    spec: {
      type: "proxmox",
      endpoints: ["https://model.example:8006"],
      credentials: { secretRef },
      allow: [{ namespace: "*", adopt: true, externalId: true, storages: ["*"], networks: ["*"] }],
    },
  });
}

async function ready(stage: Stage, name: string): Promise<string> {
  const isThere = await pass(stage, long, async () => isReady(await getVm(stage.client, name)));
  const vm = await getVm(stage.client, name);
  assert.ok(isThere, JSON.stringify([name, vm?.status, stage.log.slice(-5)], undefined, 1));
  return vm?.status?.externalId ?? "";
}

async function remove(stage: Stage, name: string): Promise<void> {
  await stage.client.of(virtualMachineKind).delete({ namespace: "default", name });
}

async function gone(stage: Stage, name: string): Promise<void> {
  await remove(stage, name);
  const isGone = await pass(stage, long, async () => {
    return (await getVm(stage.client, name)) === undefined;
  });
  assert.ok(isGone, JSON.stringify([name, (await getVm(stage.client, name))?.status]));
}

async function edit({ client }: Stage, name: string, spec: object): Promise<void> {
  await client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge: { spec } });
}

async function annotate({ client }: Stage, name: string, metadata: object): Promise<void> {
  const at = { namespace: "default", name };
  await client.of(virtualMachineKind).patch(at, { merge: { metadata } });
}

/** A volume that somebody else left under an id. */
function leaveVolume({ model }: Stage, vmid: number, gib = 1): void {
  const backing = "pve1:rpool/data";
  const volumes = model.cluster.state.volumes[backing] ?? [];
  model.cluster.state.volumes[backing] = volumes;
  const volume = { name: `vm-${vmid}-disk-7`, content: "images", format: "raw", vmid } as const;
  volumes.push({ ...volume, sizeBytes: gib * 2 ** 30, usedBytes: 0, createdMs: 0 });
}

/** What 0.1 notes where a volume stood under an id before: seldom, and hard to bring about. */
async function noteBefore({ client }: Stage, name: string): Promise<void> {
  const { items } = await client.of(claimKind).list();
  const claim = items.find(({ spec }) => spec.owner.name === name);
  const { externalId, preflightVolumes = [] } = claim?.spec ?? {};
  const spec = { preflightVolumes: [...preflightVolumes, `local-zfs:vm-${externalId}-disk-9`] };
  await client.of(claimKind).patch({ name: claim?.metadata.name ?? "" }, { merge: { spec } });
}

/** What rests: machines as declared, one that is gone, and Claims that nobody lives in. */
async function settle(stage: Stage): Promise<void> {
  const { client, model } = stage;
  model.cluster.state.guests["900"] = { node: "pve1", text: older };
  leaveVolume(stage, 900, 10);
  leaveVolume(stage, 700);
  leaveVolume(stage, 701);
  const stand = async (name: string, spec: Partial<WrittenVirtualMachineSpec>): Promise<string> => {
    await createVm(client, name, { ...blank, ...spec });
    return ready(stage, name);
  };
  for (const name of ["steady", "growing", "stopping", "paused", "lost-object"]) {
    await stand(name, {});
  }
  await noteBefore(stage, "steady");
  await annotate(stage, "paused", { annotations: { "berth.dev/paused": "true" } });
  const id = await stand("missing", {});
  await createVm(client, "adopted", {
    source: { blank: {} },
    disks: [{ ...root, size: "10Gi" }],
    adopt: "Only",
    externalId: "900",
    powerState: "Stopped",
  });
  await ready(stage, "adopted");
  await stand("let-go", { deletionPolicy: "Retain" });
  await gone(stage, "let-go");
  await stand("deleted", {});
  await gone(stage, "deleted");
  for (const name of ["kept-disk", "leaving", "handing-over"]) {
    await stand(name, { disks: [root, kept], powerState: "Stopped" });
  }
  await gone(stage, "kept-disk");
  await createVm(client, "blocked", { ...blank, externalId: "700" });
  // Somebody takes a machine away with its disks, and somebody else an object without its machine.
  model.removeVolume("pve1", `local-zfs:vm-${id}-disk-0`);
  model.killMachine(Number(id));
  model.removeGuestFile(Number(id));
  await annotate(stage, "lost-object", { annotations: { "berth.dev/paused": "true" } });
  await remove(stage, "lost-object");
  await annotate(stage, "lost-object", { finalizers: null });
  const isTold = await pass(stage, 3 * 3600_000, async () => {
    const { items } = await client.of(orphanKind).list();
    const failure = (await getVm(client, "missing"))?.status?.failure?.category;
    return items.length >= 2 && failure === "Missing";
  });
  assert.ok(isTold, JSON.stringify((await client.of(orphanKind).list()).items));
}

/** A machine that was there before Berth. */
const older =
  "cores: 2\nmemory: 2048\nname: adopted\nboot: order=scsi0\nagent: 1\nserial0: socket\n" +
  "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0\nscsi0: local-zfs:vm-900-disk-7,size=10G\n" +
  "smbios1: uuid=00000000-0000-4000-8000-00000000f00d\nsockets: 1\nonboot: 1\n";

/** Then much is begun, and its replies are held back until the power fails. */
async function begin(stage: Stage): Promise<void> {
  const { client } = stage;
  const idOf = async (name: string): Promise<string> => {
    return (await getVm(client, name))?.status?.externalId ?? "?";
  };
  const growing = await idOf("growing");
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: "coming" },
    spec: {
      source: {
        http: { url: "https://images.example/own.qcow2", checksum: `sha256:${"0".repeat(64)}` },
      },
    },
  });
  await createVm(client, "from-image", { ...blank, source: { image: { name: "coming" } } });
  stage.holds = ({ path }) => path.endsWith("/move_disk");
  await remove(stage, "handing-over");
  const isMoving = await pass(
    stage,
    long,
    () => stage.writes.at(-1)?.endsWith("/move_disk") === true,
  );
  assert.ok(isMoving, JSON.stringify((await getVm(client, "handing-over"))?.status));
  stage.holds = (request) => isHeldUp(request, growing);
  await remove(stage, "leaving");
  await edit(stage, "growing", {
    disks: [root, { name: "more", size: "4Gi", storage: "local-zfs" }],
  });
  await edit(stage, "stopping", { powerState: "Stopped" });
  await createVm(client, "arriving", blank);
  await pass(stage, 12_000);
}

function isHeldUp({ method, path }: PveRequest, growing: string): boolean {
  if (method === "GET") return false;
  const isNew = /\/nodes\/pve\d\/qemu$/.test(path);
  return isNew || path.includes(`/qemu/${growing}/`) || path.endsWith("/move_disk");
}

/** What is left of an installation of this release, and what it wrote when it was started again. */
export async function makeKept(tell = console.log): Promise<KeptFolder> {
  const stage = await openStage();
  await declare(stage);
  stage.start();
  await settle(stage);
  await begin(stage);
  const left = await stage.crash();
  for (const line of await described(stage)) tell(line);
  const again = await openStage(left);
  again.start();
  await pass(again, 30 * 60_000);
  return { ...left, writes: again.writes };
}

async function described({ client }: Stage): Promise<string[]> {
  const { items: vms } = await client.of(virtualMachineKind).list();
  const { items: claims } = await client.of(claimKind).list();
  return [
    ...vms.map(({ metadata, status }) => {
      return `${metadata.name} ${status?.operation?.step} ${status?.failure?.category}`;
    }),
    ...claims.map(({ spec }) => JSON.stringify(spec)),
  ];
}

async function write(folder: string): Promise<void> {
  const { nowMs, writes, records, cluster } = await makeKept();
  const path = join(folder, "berth.db");
  await writeDatabase(path, records);
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
  rmSync(path);
  writeFileSync(join(folder, "cluster.json.gz"), gzipSync(cluster, { level: 9 }));
  const facts = JSON.stringify({ nowMs, writes }, undefined, 1);
  writeFileSync(join(folder, "facts.json"), `${facts}\n`);
}

if (import.meta.main) {
  await write(process.argv[2] ?? ".");
  process.exit(0);
}
