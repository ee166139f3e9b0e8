import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  until,
  type World,
} from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const names = ["lost", "resized", "stopped", "started", "restarted", "deleted", "same"];
const minuteMs = 60_000;

interface Lives {
  readonly stage: SimulatedWorld;
  /** It was superseded, and only observes. */
  readonly observing: World;
  readonly acting: World;
}

/** VMs run; a copy of the installation is started and acts from then on. */
async function supersede(made: readonly string[] = names): Promise<Lives> {
  const stage = await openProxmox();
  const { world: observing } = stage;
  observing.start();
  for (const name of made) {
    const powerState = ["started", "lost"].includes(name) ? "Stopped" : "Running";
    await createVm(observing.client, name, { disks, powerState, guestAgent: { enabled: false } });
  }
  assert.ok(await until(observing, async () => (await readyOf(observing)) === "Connected"));
  assert.ok(await until(observing, () => areReady(observing, made), 30 * minuteMs));
  const acting = await observing.copy();
  acting.start();
  assert.ok(await until(observing, async () => (await readyOf(observing)) === "Superseded"));
  return { stage, observing, acting };
}

async function areReady({ client }: World, which: readonly string[]): Promise<boolean> {
  const vms = await Promise.all(which.map((name) => getVm(client, name)));
  return vms.every((vm) => isReady(vm));
}

async function readyOf({ client }: World): Promise<string | undefined> {
  const { status } = await client.of(hypervisorKind).get({ name: "model" });
  return status?.conditions?.find(({ type }) => type === "Ready")?.reason;
}

async function edit(
  { client }: World,
  name: string,
  spec: Partial<WrittenVirtualMachineSpec>,
): Promise<void> {
  await client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge: { spec } });
}

async function annotate(
  { client }: World,
  name: string,
  written: Record<string, string>,
): Promise<void> {
  const merge = { metadata: { annotations: written } };
  await client.of(virtualMachineKind).patch({ namespace: "default", name }, { merge });
}

type Request = Parameters<SimulatedWorld["asRoot"]>[0];

/** What root does takes time, which has to pass meanwhile. */
async function byRoot(stage: SimulatedWorld, request: Request): Promise<void> {
  const sent = { isDone: false };
  void stage.asRoot(request).then(() => (sent.isDone = true));
  assert.ok(await until(stage.world, () => sent.isDone, minuteMs));
}

async function destroyByHand(stage: SimulatedWorld, vm: VirtualMachine | undefined): Promise<void> {
  const { node, externalId } = vm?.status ?? {};
  const path = `/nodes/${node}/qemu/${externalId}`;
  await byRoot(stage, { method: "DELETE", path, params: {} });
}

/** What it would do to each VM: effect and intent. */
async function plannedOf({ client }: World): Promise<Record<string, string[]>> {
  const { items } = await client.of(virtualMachineKind).list();
  const entries = items.map(({ metadata, status }): [string, string[]] => {
    const steps = status?.plannedSteps?.map(({ effect, intent, blockedBy }) => {
      return `${effect}: ${intent}${blockedBy === undefined ? "" : ` [${blockedBy}]`}`;
    });
    return [metadata.name ?? "", steps ?? ["not observed"]];
  });
  return Object.fromEntries(entries);
}

async function takeOver({ client }: World): Promise<void> {
  const { status } = await client.of(hypervisorKind).get({ name: "model" });
  const token = `2026-11-16T12:00:00Z ${status?.observedBy}`;
  const merge = { metadata: { annotations: { [annotations.takeoverAt]: token } } };
  await client.of(hypervisorKind).patch({ name: "model" }, { merge });
}

/** Every request that changed something, as "method id what". */
function writesSince({ requests }: SimulatedWorld, from: number): string[] {
  return requests.slice(from).flatMap(({ method, path }) => {
    const found = /^\/nodes\/[^/]+\/qemu\/(\d+)(?:\/(?:status\/)?(\w+))?$/.exec(path);
    return method === "GET" || found === null ? [] : [`${method} ${found[1]} ${found[2] ?? ""}`];
  });
}

describe("a copy that only observes", () => {
  it("tells for each VM what it would do, and does exactly that after a takeover", async () => {
    const { stage, observing, acting } = await supersede();
    const idOf: Record<string, string> = {};
    for (const name of names) {
      idOf[name] = (await getVm(observing.client, name))?.status?.externalId ?? "";
    }
    assert.ok(await until(acting, () => areReady(acting, names), 30 * minuteMs));
    await edit(acting, "resized", { cpu: { cores: 3 } });
    await edit(acting, "stopped", { powerState: "Stopped", shutdown: { graceSeconds: 5 } });
    await edit(acting, "started", { powerState: "Running" });
    await destroyByHand(stage, await getVm(acting.client, "lost"));
    await annotate(observing, "restarted", { [annotations.restartAt]: "2026-11-16T11:00:00Z" });
    const at = { namespace: "default", name: "deleted" };
    await observing.client.of(virtualMachineKind).delete(at);
    await until(observing, () => false, 6 * minuteMs);
    const planned = await plannedOf(observing);
    assert.deepEqual(planned, {
      lost: [],
      resized: ["Change: Change cpu.cores from 3 to 2."],
      stopped: ["Start: Start the machine."],
      started: ["Stop: Ask the guest to shut down, within 180 s."],
      restarted: ["Restart: Ask the guest to shut down, within 180 s."],
      deleted: ["Delete: Shut the VM down, then destroy it."],
      same: [],
    });
    const lost = await getVm(observing.client, "lost");
    assert.equal(condition(lost, "Stalled"), "True Missing");
    const from = stage.requests.length;
    await takeOver(observing);
    await until(observing, () => false, 10 * minuteMs);
    const touched = new Set(writesSince(stage, from).map((write) => write.split(" ")[1]));
    const listed = Object.entries(planned).filter(([, steps]) => steps.length > 0);
    assert.deepEqual(touched, new Set(listed.map(([name]) => idOf[name])));
    const after = Object.values(await plannedOf(observing)).flat();
    assert.deepEqual([...new Set(after)], ["not observed"], "a copy that acts plans nothing ahead");
  });

  it("tells what keeps a VM from being created, and creates the others after a takeover", async () => {
    const { stage, observing } = await supersede([]);
    const all = { adopt: true, externalId: true, storages: ["*"], networks: ["*"] };
    const merge = { spec: { allow: [{ namespace: "*", ...all }] } };
    await observing.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    const params = { filename: "vm-900-disk-0", size: "1G", vmid: "900" };
    const path = "/nodes/pve1/storage/local-zfs/content";
    await byRoot(stage, { method: "POST", path, params });
    const placement = { node: "pve1" };
    const blank = { disks, placement, source: { blank: {} } };
    await createVm(observing.client, "new", blank);
    await createVm(observing.client, "blocked", { ...blank, externalId: "900" });
    await until(observing, () => false, minuteMs);
    const planned = await plannedOf(observing);
    assert.deepEqual(planned["new"], ["Create: Create the VM under a free id on node pve1."]);
    assert.match(`${planned["blocked"]?.[0]}`, /^Create: .* \[OrphanedVolumes: .*vm-900-disk-0/);
    assert.deepEqual(await listClaims(observing.client), [], "an id is reserved by observing");
    await takeOver(observing);
    assert.ok(await until(observing, () => areReady(observing, ["new"]), 10 * minuteMs));
    const blocked = await getVm(observing.client, "blocked");
    assert.equal(blocked?.status?.failure?.category, "OrphanedVolumes");
  });
});
