import assert from "node:assert/strict";
import { annotations, virtualMachineKind } from "../../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { PveReply, PveRequest, Send } from "../../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import { openProxmox } from "./simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, listClaims, until } from "./world.ts";
import type { Incarnation, World } from "./world.ts";

/** A machine's whole life: made from the spec, changed step by step, and deleted. */
export interface Saga {
  readonly name: string;
  readonly spec: Partial<WrittenVirtualMachineSpec>;
  readonly changes: readonly object[];
}

/**
 * What happens at one effect. That is one request that changes something on the hypervisor, or, for
 * `repeat`, one operation as a whole, or, for the last two, one step of the hypervisor's workers.
 */
export type Trouble =
  | "crash before"
  | "crash after"
  | "request lost"
  | "reply lost"
  | "refused"
  | "repeat"
  | "deleted before"
  | "deleted after"
  | "crash before, deleted"
  | "crash after, deleted"
  | "step fails"
  | "worker killed";

/** Where the trouble is: the how-manieth effect of the undisturbed life. */
export interface Strike {
  readonly trouble: Trouble;
  readonly at: number;
}

/** The effects of a life that nothing disturbs. */
export interface Undisturbed {
  /** Requests that change something, as text. */
  readonly writes: readonly string[];
  /** How many of them there were before the deletion. */
  readonly beforeDeletion: number;
  /** Operations that were begun. */
  readonly operations: readonly string[];
  /** Steps of workers, as text. */
  readonly steps: readonly string[];
}

/** How many effects a trouble can be at. */
export function effectsOf(trouble: Trouble, calm: Undisturbed): number {
  if (trouble === "repeat") return calm.operations.length;
  if (trouble === "step fails" || trouble === "worker killed") return calm.steps.length;
  return trouble.includes("deleted") ? calm.beforeDeletion : calm.writes.length;
}

const name = "saga";
/** Troubles that do not strike at a request. */
const elsewhere: ReadonlySet<Trouble> = new Set(["repeat", "step fails", "worker killed"]);
const never = new Promise<never>(() => undefined);

/** Lives the saga once without trouble. What it counts is all that the laws strike at. */
export async function undisturbed(saga: Saga): Promise<Undisturbed> {
  const life = await Life.open(saga);
  const before = life.inventory();
  await life.stand();
  const beforeDeletion = life.writes.length;
  await life.delete();
  assert.deepEqual(life.inventory(), before, `${saga.name}: what it leaves behind`);
  const { writes, operations, steps } = life;
  return { writes, beforeDeletion, operations, steps };
}

/**
 * Lives the saga with one strike. However it goes on, there is never a second machine, and in the
 * end the cluster has what it had before: machines, volumes, discs, members of pools, entries of
 * high availability, and everything of the strangers.
 */
export async function liveThrough(saga: Saga, strike: Strike): Promise<void> {
  const life = await Life.open(saga, strike);
  const before = life.inventory();
  await life.stand();
  await life.delete();
  assert.ok(life.hasStruck, life.told("the strike was never reached"));
  await life.clearHusks();
  assert.deepEqual(life.inventory(), before, life.told("what it leaves behind"));
}

/** One life, over as many incarnations of the program as it takes. */
class Life {
  readonly writes: string[] = [];
  readonly operations: string[] = [];
  readonly steps: string[] = [];
  hasStruck = false;
  readonly #saga: Saga;
  readonly #strike: Strike | undefined;
  #world: World | undefined;
  #proxmox: ProxmoxModel | undefined;
  #program: Incarnation | undefined;
  #strangers = new Set<string>();
  #isDeleted = false;

  private constructor(saga: Saga, strike: Strike | undefined) {
    this.#saga = saga;
    this.#strike = strike;
  }

  static async open(saga: Saga, strike?: Strike): Promise<Life> {
    const life = new Life(saga, strike);
    const { world, proxmox } = await openProxmox("8.4", {
      between: (request, send) => life.#send(request, send),
      around: (driver) => life.#driver(driver),
    });
    life.#world = world;
    life.#proxmox = proxmox;
    addStrangers(proxmox);
    life.#watchWorkers(proxmox);
    life.#strangers = new Set(Object.keys(proxmox.cluster.state.guests));
    return life;
  }

  /** Made and changed until it is as declared, or gone because somebody deleted it meanwhile. */
  async stand(): Promise<void> {
    await createVm(this.world.client, name, this.#saga.spec);
    await this.#untilAsDeclared("made");
    for (const [i, change] of this.#saga.changes.entries()) {
      if (this.#isDeleted) return;
      await this.world.client.of(virtualMachineKind).patch(at, { merge: { spec: change } });
      await this.#untilAsDeclared(`changed (${i + 1})`);
    }
  }

  async delete(): Promise<void> {
    if (!this.#isDeleted) await this.#askToDelete();
    await this.#untilHolds(
      "gone",
      async () => (await getVm(this.world.client, name)) === undefined,
    );
    this.#program?.crash();
  }

  /** All that the cluster has of guests, told from its own state. */
  inventory(): object {
    const { guests, volumes, pools, ha } = this.proxmox.cluster.state;
    const files = Object.entries(guests).map(([id, { node, text }]) => `${node} ${id}\n${text}`);
    const stored = Object.entries(volumes).flatMap(([backing, there]) => {
      return there.map((volume) => `${backing} ${volume.name} ${volume.sizeBytes}`);
    });
    return {
      guests: files.toSorted(),
      volumes: stored.toSorted(),
      pools: structuredClone(pools),
      ha: structuredClone(ha),
    };
  }

  told(what: string): string {
    const { trouble = "no trouble", at: effect = 0 } = this.#strike ?? {};
    const { writes, operations, steps } = this;
    const others: Record<string, readonly string[]> = {
      repeat: operations,
      "step fails": steps,
      "worker killed": steps,
    };
    const where = (others[trouble] ?? writes)[effect - 1] ?? "";
    return `${this.#saga.name}, ${trouble} at effect ${effect} (${where}): ${what}`;
  }

  get world(): World {
    assert.ok(this.#world);
    return this.#world;
  }

  get proxmox(): ProxmoxModel {
    assert.ok(this.#proxmox);
    return this.#proxmox;
  }

  async #untilAsDeclared(what: string): Promise<void> {
    await this.#untilHolds(what, async () => {
      const vm = await getVm(this.world.client, name);
      if (this.#isDeleted) return vm === undefined;
      return isReady(vm) && condition(vm, "Synced").startsWith("True");
    });
  }

  async #untilHolds(what: string, holds: () => Promise<boolean>): Promise<void> {
    const hasCome = await until(this.world, async () => {
      if (this.#program === undefined || this.#program.isCrashed) {
        this.#program = this.world.start();
      }
      this.#demandOneMachine();
      await this.#mend();
      return holds();
    });
    if (hasCome) return;
    const vm = await getVm(this.world.client, name);
    const facts = JSON.stringify(
      [vm?.status, this.writes, this.world.log.slice(-20)],
      undefined,
      1,
    );
    assert.fail(this.told(`never ${what}: ${facts}`));
  }

  #demandOneMachine(): void {
    const ours = this.#ours().filter((id) => !this.#isHusk(id));
    assert.ok(ours.length <= 1, this.told(`more than one machine: ${ours.join()}`));
  }

  #ours(): string[] {
    const ids = Object.keys(this.proxmox.cluster.state.guests);
    return ids.filter((id) => !this.#strangers.has(id));
  }

  /** A worker that was killed leaves a reservation that says nothing but its lock. */
  #isHusk(id: string): boolean {
    return !/^name:/m.test(this.proxmox.cluster.state.guests[id]?.text ?? "");
  }

  /**
   * Empty reservations of workers that were killed: no token may remove them, so each has to stand
   * in a Claim that was let go, where people find it. Then a person removes it.
   */
  async clearHusks(): Promise<void> {
    const claims = (await listClaims(this.world.client)).map(({ spec }) => spec);
    for (const id of this.#ours().filter((there) => this.#isHusk(there))) {
      const claim = claims.find(({ externalId }) => externalId === id);
      assert.equal(claim?.state, "Released", this.told(`nobody knows of the reservation ${id}`));
      destroyByHand(this.proxmox, id);
    }
  }

  /**
   * A person does what Berth says, and only then: restarts a machine that waits for that, and
   * clears a lock, which no token may break.
   */
  async #mend(): Promise<void> {
    const vm = await getVm(this.world.client, name);
    const isWaiting = condition(vm, "Synced") === "False RestartRequired";
    if (isWaiting && !this.#isDeleted) await this.#restart(vm?.metadata.generation);
    const { failure } = vm?.status ?? {};
    if (failure?.category === "LockError" && failure.nextRetryAt === undefined) this.#unlock();
  }

  #unlock(): void {
    for (const id of this.#ours()) {
      if (this.#isHusk(id)) destroyByHand(this.proxmox, id);
      else this.proxmox.setLock(Number(id), undefined);
    }
  }

  /** `berth restart`, once for a change. */
  async #restart(generation = 0): Promise<void> {
    const metadata = { annotations: { [annotations.restartAt]: `for change ${generation}` } };
    await this.world.client.of(virtualMachineKind).patch(at, { merge: { metadata } });
  }

  async #send(request: PveRequest, send: Send): Promise<PveReply> {
    if (request.method === "GET") return send(request);
    this.writes.push(nameOf(request));
    const isHere = this.#strike?.at === this.writes.length;
    return isHere ? this.#struck(request, send) : send(request);
  }

  async #struck(request: PveRequest, send: Send): Promise<PveReply> {
    const { trouble = "repeat" } = this.#strike ?? {};
    if (elsewhere.has(trouble)) return send(request);
    this.hasStruck = true;
    const lost = { type: "lost", detail: "socket hang up" } as const;
    switch (trouble) {
      case "crash before":
      case "crash before, deleted":
        return this.#die();
      case "crash after":
      case "crash after, deleted":
        await send(request);
        return this.#die();
      case "request lost":
        return lost;
      case "reply lost":
        await send(request);
        return lost;
      case "refused":
        return {
          type: "answered",
          status: 500,
          reason: "it did not please",
          body: "",
          from: "pve1",
        };
      case "deleted before":
        await this.#askToDelete();
        return send(request);
      case "deleted after": {
        const reply = await send(request);
        await this.#askToDelete();
        return reply;
      }
      default:
        return send(request);
    }
  }

  async #die(): Promise<never> {
    this.#program?.crash();
    if (this.#strike?.trouble.endsWith("deleted") === true) await this.#askToDelete();
    return never;
  }

  async #askToDelete(): Promise<void> {
    if (this.#isDeleted) return;
    this.#isDeleted = true;
    await this.world.client.of(virtualMachineKind).delete(at);
  }

  /** Counts the steps of all workers, and lets one of them fail or its worker be killed. */
  #watchWorkers({ faults }: ProxmoxModel): void {
    const { trouble } = this.#strike ?? {};
    const fails = { kind: "fail", error: new Error("something went wrong") } as const;
    faults.onStep({
      verdict: trouble === "worker killed" ? { kind: "kill" } : fails,
      matches: ({ name: worker, steps }) => {
        if (worker.startsWith("GET")) return false;
        this.steps.push(`${worker}, step ${steps}`);
        const isWorkers = trouble === "step fails" || trouble === "worker killed";
        const isHere = isWorkers && this.#strike?.at === this.steps.length;
        this.hasStruck ||= isHere;
        return isHere;
      },
    });
  }

  /** An operation that is repeated is begun again, as if nobody knew of the first time. */
  #driver(driver: HypervisorDriver): HypervisorDriver {
    return {
      ...driver,
      begin: async (operation, fence) => {
        this.operations.push(operation.kind);
        const begun = await driver.begin(operation, fence);
        const { trouble, at: which } = this.#strike ?? {};
        if (trouble !== "repeat" || which !== this.operations.length) return begun;
        this.hasStruck = true;
        return driver.begin(operation, fence);
      },
    };
  }
}

const at = { namespace: "default", name };

function nameOf({ method, path }: PveRequest): string {
  return `${method} ${path.replaceAll(/[0-9a-f]{8,}[0-9a-f-]*/g, "…")}`;
}

/** `qm unlock ID && qm destroy ID --purge`, as the failure has it. */
function destroyByHand(proxmox: ProxmoxModel, id: string): void {
  const { pools, ha } = proxmox.cluster.state;
  proxmox.removeGuestFile(Number(id));
  for (const pool of pools) pool.vms = pool.vms.filter((member) => member !== Number(id));
  Reflect.deleteProperty(ha, `vm:${id}`);
}

/** What others have: a machine named like ours, in a pool and highly available, and a template. */
function addStrangers(proxmox: ProxmoxModel): void {
  const { state } = proxmox.cluster;
  const key = "pve1:rpool/data";
  const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
  const disk = { content: "images", format: "raw", vmid: 100, ...sizes } as const;
  const left = { content: "images", format: "raw", vmid: 777, ...sizes } as const;
  state.volumes[key] = [
    ...(state.volumes[key] ?? []),
    { name: "vm-100-disk-0", ...disk },
    { name: "vm-777-disk-0", ...left },
    { name: "base-900-disk-0", ...disk, vmid: 900, data: "debian-12" },
  ];
  const text = `name: ${name}\nmemory: 512\nscsi0: local-zfs:vm-100-disk-0,size=1G\n`;
  proxmox.writeGuestFile("pve1", 100, text);
  const template = "name: template\nmemory: 512\ntemplate: 1\n";
  const disk0 = "scsi0: local-zfs:base-900-disk-0,size=1G\n";
  proxmox.writeGuestFile("pve1", 900, `${template}${disk0}`);
  state.pools.push({ poolid: "prod", vms: [100], storages: [] });
  state.ha["vm:100"] = { state: "stopped" };
}
