import assert from "node:assert/strict";
import { hypervisorKind, virtualMachineKind } from "../../api/index.ts";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../../api/index.ts";
import { endpointOf, type PveRequest } from "../../drivers/proxmox/index.ts";
import type { Release } from "../../sim/index.ts";
import {
  actAsPerson,
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "../testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until, type Incarnation } from "../testing/world.ts";

export type Spec = Partial<WrittenVirtualMachineSpec>;
type Guests = SimulatedWorld["proxmox"]["cluster"]["state"]["guests"];

export const root = { name: "root", size: "10Gi", storage: "local-zfs" } as const;

/** A Berth with a simulated Proxmox, and what a person can do and see there. */
export class Stage {
  readonly simulated: SimulatedWorld;
  /** The process that runs now. */
  berth: Incarnation;

  static async open(
    release?: Release,
    options?: StageOptions & { readonly before?: (simulated: SimulatedWorld) => void },
  ): Promise<Stage> {
    const between: StageOptions["between"] = (request, send) => {
      const { method, path } = request;
      assert.ok(endpointOf(request), `the driver's page does not name ${method} ${path}`);
      return options?.between === undefined ? send(request) : options.between(request, send);
    };
    const simulated = await openProxmox(release, { ...options, between });
    options?.before?.(simulated);
    return new Stage(simulated);
  }

  private constructor(simulated: SimulatedWorld) {
    this.simulated = simulated;
    this.berth = simulated.world.start();
  }

  get state(): SimulatedWorld["proxmox"]["cluster"]["state"] {
    return this.simulated.proxmox.cluster.state;
  }

  get guests(): Guests {
    return this.state.guests;
  }

  /** Every request that changes something, as "POST /nodes/pve1/qemu". */
  get writes(): string[] {
    return this.writeRequests.map(({ method, path }) => `${method} ${path}`);
  }

  get writeRequests(): PveRequest[] {
    return this.simulated.requests.filter(({ method }) => method !== "GET");
  }

  /** Names of volumes that belong to a machine. */
  get volumes(): string[] {
    return Object.values(this.state.volumes)
      .flatMap((volumes) => volumes.filter(({ vmid }) => vmid !== undefined))
      .map(({ name }) => name);
  }

  /** Kill -9, and a new process. */
  restart(): void {
    this.berth.crash();
    this.berth = this.simulated.world.start();
  }

  async declare(name: string, spec: Spec = {}): Promise<void> {
    await createVm(this.simulated.world.client, name, { disks: [root], ...spec });
  }

  /** Declares a machine and waits until it is as declared. */
  async make(name: string, spec: Spec = {}): Promise<VirtualMachine> {
    await this.declare(name, spec);
    return this.synced(name);
  }

  async vm(name: string): Promise<VirtualMachine | undefined> {
    return getVm(this.simulated.world.client, name);
  }

  async edit(name: string, spec: object): Promise<VirtualMachine> {
    const at = { namespace: "default", name };
    const { client } = this.simulated.world;
    return client.of(virtualMachineKind).patch(at, { merge: { spec } });
  }

  async synced(name: string): Promise<VirtualMachine> {
    return this.when(name, (vm) => isReady(vm) && condition(vm, "Synced") === "True Succeeded");
  }

  async failed(name: string, category: string): Promise<VirtualMachine> {
    return this.when(name, ({ status }) => status?.failure?.category === category);
  }

  /** The object once something holds of it. */
  async when(name: string, holds: (vm: VirtualMachine) => boolean): Promise<VirtualMachine> {
    const isSo = await this.until(async () => {
      const vm = await this.vm(name);
      return vm !== undefined && holds(vm);
    });
    const vm = await this.vm(name);
    assert.ok(vm && isSo, JSON.stringify([vm?.status, this.simulated.world.log], undefined, 1));
    return vm;
  }

  until(holds: () => Promise<boolean> | boolean, withinMs?: number): Promise<boolean> {
    return until(this.simulated.world, holds, withinMs);
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    await this.until(() => false, ms);
  }

  async remove(name: string): Promise<void> {
    await this.startRemoving(name);
    const isGone = await this.until(async () => (await this.vm(name)) === undefined);
    assert.ok(isGone, JSON.stringify((await this.vm(name))?.status, undefined, 1));
  }

  async startRemoving(name: string): Promise<void> {
    const at = { namespace: "default", name };
    await this.simulated.world.client.of(virtualMachineKind).delete(at);
  }

  /** What somebody does by way of the API. */
  async person(
    method: PveRequest["method"],
    path: string,
    params: NonNullable<PveRequest["params"]>,
  ): Promise<void> {
    const { proxmox } = this.simulated;
    const done = { is: false };
    const act = actAsPerson(proxmox, { method, path, params }).finally(() => (done.is = true));
    await this.until(() => done.is);
    await act;
  }

  /** What the namespaces may use. */
  async allow(entry: object): Promise<void> {
    const all = { namespace: "*", externalId: true, storages: ["*"], networks: ["*"] };
    const merge = { spec: { allow: [{ ...all, ...entry }] } };
    await this.simulated.world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  }

  /** The lines of a machine's file, without its snapshots. */
  config(vm: VirtualMachine | undefined): Record<string, string> {
    const text = this.guests[idOf(vm)]?.text ?? "";
    const lines = text.split(/\n\[|\n\n/)[0]?.split("\n") ?? [];
    return Object.fromEntries(
      lines.map((line): [string, string] => {
        const [, key = "", value = ""] = /^([^:]*): (.*)$/.exec(line) ?? [];
        return [key, value];
      }),
    );
  }
}

export function idOf(vm: VirtualMachine | undefined): string {
  return vm?.status?.externalId ?? "";
}
