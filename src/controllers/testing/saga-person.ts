import { annotations, hypervisorKind, orphanKind, virtualMachineKind } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import { condition, getVm } from "./world.ts";

/** The object whose life a saga is. */
export const sagaName = "saga";
export const sagaAt = { namespace: "default", name: sagaName };

/** Where a person is: before the API, and at the cluster. */
export interface PersonsPlace {
  readonly client: Client;
  readonly proxmox: ProxmoxModel;
  /** The ids of what Berth made there. */
  readonly ours: readonly string[];
}

/**
 * A person does what Berth says, and only then: restarts a machine that waits for that, approves a
 * plan that is shown and the removal of what is in the way and probably Berth's, and clears a lock,
 * which no token may break.
 */
export async function doAsTold({ client, proxmox, ours }: PersonsPlace): Promise<void> {
  const vm = await getVm(client, sagaName);
  if (vm === undefined || vm.metadata.deletionTimestamp === undefined) await answer(client, vm);
  const category = vm?.status?.failure?.category;
  if (category === "OrphanedVolumes") await approveProbable(client);
  if (category === "LockError") clearLocks(proxmox, ours);
}

function clearLocks(proxmox: ProxmoxModel, ids: readonly string[]): void {
  for (const id of ids) {
    if (isHusk(proxmox, id)) destroyByHand(proxmox, id);
    else proxmox.setLock(Number(id), undefined);
  }
}

/** `berth restart`, once for a change, and `berth approve`. */
async function answer(client: Client, vm: VirtualMachine | undefined): Promise<void> {
  const { generation = 0, annotations: said = {} } = vm?.metadata ?? {};
  const isWaiting = condition(vm, "Synced") === "False RestartRequired";
  const words = {
    ...(isWaiting ? { [annotations.restartAt]: `for change ${generation}` } : {}),
    ...(vm?.status?.plan === undefined ? {} : { [annotations.approve]: vm.status.plan.hash }),
  };
  if (Object.entries(words).every(([key, value]) => said[key] === value)) return;
  const merge = { metadata: { annotations: words } };
  await client.of(virtualMachineKind).patch(sagaAt, { merge });
}

/** A worker that was killed leaves a reservation that says nothing but its lock. */
export function isHusk(proxmox: ProxmoxModel, id: string): boolean {
  return !/^name:/m.test(proxmox.cluster.state.guests[id]?.text ?? "");
}

export function isPausedNow({ cluster }: ProxmoxModel, id: string): boolean {
  return cluster.machine(Number(id))?.isPaused === true;
}

/** Somebody pauses the machine, beside Berth. */
export function pauseByHand(proxmox: ProxmoxModel, id: string): void {
  const { cluster } = proxmox;
  const machine = cluster.machine(Number(id));
  if (machine === undefined) return;
  cluster.setMachine(cluster.nodeOfGuest(Number(id)) ?? "", Number(id), {
    ...machine,
    isPaused: true,
  });
}

/** `qm unlock ID && qm destroy ID --purge`, as the failure has it. */
export function destroyByHand(proxmox: ProxmoxModel, id: string): void {
  const { pools, ha, volumes } = proxmox.cluster.state;
  if (!isHusk(proxmox, id)) {
    for (const [backing, there] of Object.entries(volumes)) {
      volumes[backing] = there.filter(({ vmid }) => vmid !== Number(id));
    }
  }
  proxmox.removeGuestFile(Number(id));
  for (const pool of pools) pool.vms = pool.vms.filter((member) => member !== Number(id));
  Reflect.deleteProperty(ha, `vm:${id}`);
}

/** `berth orphans destroy ID`, for every volume that an Orphan reports as probably Berth's. */
export async function approveProbable(client: Client): Promise<void> {
  const { items } = await client.of(orphanKind).list();
  for (const { metadata, spec, status } of items) {
    if (status?.ownership !== "Probable" || spec.decision !== undefined) continue;
    if (status.allowedDecisions?.includes("Destroy") !== true) continue;
    const merge = { spec: { decision: "Destroy", confirm: spec.externalId } };
    await client.of(orphanKind).patch({ name: metadata.name ?? "" }, { merge });
  }
}

/** Somebody wants to hear at once of what is left, instead of after the usual hour. */
export async function reportAtOnce(client: Client): Promise<void> {
  const merge = { spec: { orphans: { graceSeconds: 60, sweepSeconds: 60 } } };
  await client.of(hypervisorKind).patch({ name: "model" }, { merge });
}
