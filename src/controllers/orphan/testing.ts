import assert from "node:assert/strict";
import { hypervisorKind, orphanKind, virtualMachineKind } from "../../api/index.ts";
import type { Orphan, WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import type { SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until, type World } from "../testing/world.ts";

export const gib = 1024 ** 3;
export const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
/** Longer than the grace time and two sweeps. */
export const longMs = 2 * 3600_000;

/** Hours pass in these tests: a lease and a look that are less in a hurry make them short. */
export const slow = {
  tickMs: 60_000,
  whenAbsent: "trust",
  lease: { durationMs: 3_600_000, validMs: 3_000_000, retryMs: 600_000 },
} as const;

/** A volume that nothing refers to. */
export function leaveVolume(
  { cluster }: ProxmoxModel,
  name: string,
  { sizeBytes = gib, backing = "pve1:rpool/data" } = {},
): void {
  const vmid = Number(/vm-(\d+)-/.exec(name)?.[1]);
  const volumes = cluster.state.volumes[backing] ?? [];
  const volume = { name, content: "images", format: "raw", vmid, sizeBytes, usedBytes: 0 } as const;
  volumes.push({ ...volume, createdMs: 0 });
  cluster.state.volumes[backing] = volumes;
}

export function volumeNames({ cluster }: ProxmoxModel): string[] {
  return Object.values(cluster.state.volumes)
    .flat()
    .filter(({ vmid }) => vmid !== undefined)
    .map(({ name }) => name);
}

export async function listOrphans({ client }: World): Promise<Orphan[]> {
  return (await client.of(orphanKind).list()).items;
}

export async function orphanOf(world: World, externalId: string): Promise<Orphan | undefined> {
  return (await listOrphans(world)).find(({ spec }) => spec.externalId === externalId);
}

export function reasonOf(orphan: Orphan | undefined): string {
  return orphan?.status?.conditions?.find(({ type }) => type === "Ready")?.reason ?? "";
}

/** A person's word, as `berth orphans` writes it. */
export async function decide(
  { client }: World,
  orphan: Orphan,
  spec: Partial<Orphan["spec"]>,
): Promise<void> {
  const merge = { spec: { confirm: orphan.spec.externalId, ...spec } };
  await client.of(orphanKind).patch({ name: orphan.metadata.name ?? "" }, { merge });
}

export async function waitForOrphan(world: World, externalId: string): Promise<Orphan> {
  const found = async (): Promise<boolean> => {
    return (await orphanOf(world, externalId))?.status?.ownership !== undefined;
  };
  assert.ok(await until(world, found, longMs), `no Orphan ${externalId}: ${world.log.join("\n")}`);
  const orphan = await orphanOf(world, externalId);
  assert.ok(orphan);
  return orphan;
}

export async function ready(
  { world }: SimulatedWorld,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec> = {},
): Promise<string> {
  await createVm(world.client, name, { disks, ...spec });
  const isThere = await until(world, async () => isReady(await getVm(world.client, name)));
  const vm = await getVm(world.client, name);
  assert.ok(isThere, JSON.stringify([vm?.status, world.log], undefined, 1));
  return vm?.status?.externalId ?? "";
}

/** Changes what the Hypervisor says. */
export async function configure({ client }: World, spec: object): Promise<void> {
  await client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec } });
}

/** The object goes without its machine: somebody took the finalizer off. */
export async function strip({ client }: World, name: string): Promise<void> {
  const vms = client.of(virtualMachineKind);
  const at = { namespace: "default", name };
  await vms.patch(at, { merge: { metadata: { annotations: { "berth.dev/paused": "true" } } } });
  await vms.delete(at);
  await vms.patch(at, { merge: { metadata: { finalizers: null } } });
}
