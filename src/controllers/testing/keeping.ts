import assert from "node:assert/strict";
import { virtualMachineKind } from "../../api/index.ts";
import type { ClaimSpec, WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { SimulatedWorld } from "./simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./world.ts";

const web = { namespace: "default", name: "web" };
export const root = { name: "root", size: "3Gi", storage: "local-zfs" };
export const data = {
  name: "data",
  size: "2Gi",
  storage: "local-zfs",
  onDelete: "Retain",
} as const;

/** A machine with a disk that outlives it. */
export const spec: Partial<WrittenVirtualMachineSpec> = {
  source: { blank: {} },
  disks: [root, data],
  networks: [],
};

/** What stands, by id: its lines, and whether it runs. */
export function guests({ proxmox }: SimulatedWorld): Map<string, Record<string, string>> {
  const found = Object.entries(proxmox.cluster.state.guests);
  return new Map(found.map(([id, { text }]) => [id, linesOf(text)]));
}

function linesOf(text: string): Record<string, string> {
  const lines = text.split("\n\n")[0]?.split("\n") ?? [];
  const pairs = lines.map((line): [string, string] => {
    const [key = "", value = ""] = line.split(/: (.*)/s);
    return [key, value];
  });
  return Object.fromEntries(pairs);
}

export function volumes({ proxmox }: SimulatedWorld): string[] {
  return Object.values(proxmox.cluster.state.volumes)
    .flatMap((list) => list.filter(({ vmid }) => vmid !== undefined))
    .map(({ name }) => name);
}

export async function stand(
  stage: SimulatedWorld,
  more: Partial<WrittenVirtualMachineSpec> = {},
): Promise<string> {
  await createVm(stage.world.client, "web", { ...spec, ...more });
  return ready(stage);
}

export async function ready(
  stage: SimulatedWorld,
  revive: () => void = () => undefined,
): Promise<string> {
  const { world } = stage;
  const isThere = await until(world, async () => {
    revive();
    const vm = await getVm(world.client, "web");
    return isReady(vm) && vm?.status?.operation === undefined && !(await hasKeeper(stage));
  });
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify([vm?.status, await listClaims(world.client)], undefined, 1));
  return vm?.status?.externalId ?? "";
}

/** A keeper that is claimed: it is let go or destroyed before anything rests. */
export async function hasKeeper({ world }: SimulatedWorld): Promise<boolean> {
  const claims = await listClaims(world.client);
  return claims.some(({ spec: { role, state } }) => role === "DiskHolder" && isHeld(state));
}

function isHeld(state: string): boolean {
  return state === "Reserved" || state === "Bound";
}

export async function remove(
  stage: SimulatedWorld,
  revive: () => void = () => undefined,
): Promise<void> {
  const { world } = stage;
  await world.client.of(virtualMachineKind).delete(web);
  const isGone = await until(world, async () => {
    revive();
    return (await getVm(world.client, "web")) === undefined;
  });
  const status = (await getVm(world.client, "web"))?.status;
  const claims = (await listClaims(world.client)).map((claim) => claim.spec);
  assert.ok(isGone, JSON.stringify([status, claims, world.log], undefined, 1));
}

/** The one keeper, let go, with what it keeps. */
export async function keeper(stage: SimulatedWorld): Promise<ClaimSpec> {
  const claims = (await listClaims(stage.world.client)).map((claim) => claim.spec);
  const keepers = claims.filter(
    ({ role, state }) => role === "DiskHolder" && state !== "Quarantined",
  );
  assert.equal(keepers.length, 1, JSON.stringify(claims, undefined, 1));
  const [one] = keepers;
  assert.ok(one);
  assert.equal(one.state, "Released");
  const stray = claims.filter(({ role, state }) => role === "VM" && isHeld(state));
  assert.deepEqual(stray, []);
  return one;
}
