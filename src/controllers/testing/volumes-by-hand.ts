import assert from "node:assert/strict";
import { annotations, virtualMachineKind } from "../../api/index.ts";
import type { ClaimSpec, VirtualMachine, WrittenVirtualMachineSpec } from "../../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./world.ts";

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
const gib = 1024 ** 3;
const web = { namespace: "default", name: "web" };

/** A VM of Berth's, and what people do to its volumes on the hypervisor. */
export interface Scene {
  readonly stage: SimulatedWorld;
  readonly id: string;
}

/** One blank disk of 5 GiB on ZFS, which tells no times. */
export const blank: Partial<WrittenVirtualMachineSpec> = {
  source: { blank: {} },
  disks: [{ name: "root", size: "5Gi", storage: "local-zfs" }],
  placement: { node: "pve1" },
  powerState: "Stopped",
};

export async function setUp(spec: Partial<WrittenVirtualMachineSpec> = {}): Promise<Scene> {
  const stage = await openProxmox("8.4");
  stage.world.start();
  return { stage, id: await makeVm(stage, spec) };
}

export async function makeVm(
  { world }: SimulatedWorld,
  spec: Partial<WrittenVirtualMachineSpec> = {},
): Promise<string> {
  await createVm(world.client, "web", { ...blank, ...spec });
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")), hourMs);
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify(vm?.status));
  return vm?.status?.externalId ?? "";
}

export async function pass({ world }: SimulatedWorld, ms: number): Promise<void> {
  await until(world, () => false, ms);
}

export async function pause({ stage }: Scene, paused: "true" | null): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.paused]: paused } } };
  await stage.world.client.of(virtualMachineKind).patch(web, { merge });
  await pass(stage, 10_000);
}

/** A person's request to the hypervisor, and the time that its work takes. */
export async function byHand(
  { stage }: Pick<Scene, "stage">,
  [method, path]: readonly ["POST" | "PUT" | "DELETE", string],
  params: Record<string, string> = {},
): Promise<void> {
  const sent = { isDone: false };
  const done = stage.asRoot({ method, path: `/nodes/pve1/${path}`, params });
  void done.then(
    () => (sent.isDone = true),
    () => (sent.isDone = true),
  );
  assert.ok(await until(stage.world, () => sent.isDone, minuteMs));
  await done;
  await pass(stage, 5_000);
}

export function edit(scene: Scene, params: Record<string, string>): Promise<void> {
  return byHand(scene, ["POST", `qemu/${scene.id}/config`], params);
}

/** Takes a drive off, and destroys its volume. */
export async function destroyDrive(scene: Scene, slot: string): Promise<void> {
  await edit(scene, { delete: slot });
  await edit(scene, { delete: "unused0" });
}

/** A person's volume of 50 GiB under the id of the VM. */
export async function allocate(scene: Scene, name: string, size = "50G"): Promise<string> {
  const { id } = scene;
  await byHand(scene, ["POST", "storage/local-zfs/content"], { filename: name, size, vmid: id });
  return `local-zfs:${name}`;
}

export function configOf({ proxmox }: SimulatedWorld, id: string): string {
  return proxmox.cluster.state.guests[id]?.text ?? "";
}

/** The volume in a slot of a VM, with its storage. */
export function volumeAt({ stage, id }: Scene, slot: string): string | undefined {
  return new RegExp(`^${slot}: ([^,\n]+)`, "m").exec(configOf(stage, id))?.[1];
}

/** The sizes of all volumes in GiB. People's are told by them. */
function sizes({ proxmox }: SimulatedWorld): number[] {
  const all = Object.values(proxmox.cluster.state.volumes).flat();
  return all.filter(({ vmid }) => vmid !== undefined).map(({ sizeBytes }) => sizeBytes / gib);
}

export function assertKept({ stage }: Pick<Scene, "stage">, size = 50): void {
  assert.ok(
    sizes(stage).includes(size),
    `the person's volume is destroyed: ${sizes(stage).join()}`,
  );
}

export async function boundClaim({ stage }: Scene): Promise<ClaimSpec> {
  const claims = await listClaims(stage.world.client);
  const claim = claims.find(({ spec }) => spec.state === "Bound" && spec.role === "VM");
  assert.ok(claim);
  return claim.spec;
}

/** Has the VM deleted. What Berth reports of it, if it cannot go. */
export async function remove({ stage }: Scene): Promise<VirtualMachine["status"]> {
  const { world } = stage;
  await world.client.of(virtualMachineKind).delete(web);
  await until(world, async () => (await getVm(world.client, "web")) === undefined, hourMs);
  return (await getVm(world.client, "web"))?.status;
}

export async function statusOf({ stage }: Scene): Promise<VirtualMachine["status"]> {
  return (await getVm(stage.world.client, "web"))?.status;
}

/** The object goes without its VM: somebody takes its finalizer away. */
export async function strip(scene: Scene): Promise<void> {
  const vms = scene.stage.world.client.of(virtualMachineKind);
  await pause(scene, "true");
  await vms.delete(web);
  await vms.patch(web, { merge: { metadata: { finalizers: null } } });
}
