import assert from "node:assert/strict";
import { virtualMachineKind } from "../../api/index.ts";
import type { ClaimSpec, WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { PveReply, PveRequest, Send } from "../../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import {
  approveProbable,
  destroyByHand,
  doAsTold,
  isHusk,
  isPausedNow,
  pauseByHand,
  reportAtOnce,
  sagaAt,
  sagaName,
} from "./saga-person.ts";
import {
  type Bringing,
  declareImage,
  deleteImage,
  isImageGone,
  nodesWeb,
  webOf,
} from "./saga-image.ts";
import { addStrangers } from "./saga-strangers.ts";
import { openProxmox } from "./simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, listClaims, until } from "./world.ts";
import type { Incarnation, World } from "./world.ts";
import { never } from "../../kernel/never.ts";

/** A machine's whole life: made from the spec, changed step by step, and deleted. */
export interface Saga {
  readonly name: string;
  readonly spec: Partial<WrittenVirtualMachineSpec>;
  /** What is changed in the spec; or somebody pauses the machine at the hypervisor. */
  readonly changes: readonly (object | "paused")[];
  /** Objects of the same name that follow, each after the deletion of the one before. */
  readonly again?: readonly Partial<WrittenVirtualMachineSpec>[];
  /** Workers that are killed anyway, once each: "qmcreate, step 3". */
  readonly dying?: readonly string[];
  /** The Hypervisor has an account that may clear locks. */
  readonly mayUnlock?: boolean;
  /** There is an image of its own, `own`, which goes with the last object. */
  readonly image?: Bringing;
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

const name = sagaName;
const at = sagaAt;
/** How often a person looks at what Berth reports. */
const lookMs = 10_000;
/** Troubles that do not strike at a request. */
const elsewhere: ReadonlySet<Trouble> = new Set(["repeat", "step fails", "worker killed"]);

/** Lives the saga once without trouble. What it counts is all that the laws strike at. */
export async function undisturbed(saga: Saga): Promise<Undisturbed> {
  const life = await Life.open(saga);
  const before = life.inventory();
  await life.standToTheLast();
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
  await life.standToTheLast();
  await life.delete();
  assert.ok(life.hasStruck, life.told("the strike was never reached"));
  await life.clearUp();
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
    const { world, proxmox } = await openProxmox(saga.image === undefined ? "8.4" : "9.2", {
      ...nodesWeb,
      between: (request, send) => life.#send(request, send),
      around: (driver) => life.#driver(driver),
      ...(saga.mayUnlock === true ? { unlock: { username: "root@pam", password: "secret" } } : {}),
    });
    life.#world = world;
    life.#proxmox = proxmox;
    addStrangers(proxmox);
    life.#watchWorkers(proxmox);
    life.#strangers = new Set(Object.keys(proxmox.cluster.state.guests));
    return life;
  }

  /** Everything but the last deletion. */
  async standToTheLast(): Promise<void> {
    const { spec, changes, again = [], image } = this.#saga;
    if (image !== undefined) await declareImage(this.world.client, image);
    await this.#stand(spec, changes);
    for (const next of again) {
      await this.delete();
      this.#isDeleted = false;
      await this.#stand(next, []);
    }
  }

  /** Made and changed until it is as declared, or gone because somebody deleted it meanwhile. */
  async #stand(spec: Saga["spec"], changes: Saga["changes"]): Promise<void> {
    await createVm(this.world.client, name, spec);
    await this.#untilAsDeclared("made");
    for (const [i, change] of changes.entries()) {
      if (this.#isDeleted) return;
      await this.#change(change);
      await this.#untilAsDeclared(`changed (${i + 1})`);
    }
  }

  async #change(change: object | "paused"): Promise<void> {
    if (change === "paused") {
      for (const id of this.#ours()) pauseByHand(this.proxmox, id);
      return;
    }
    await this.world.client.of(virtualMachineKind).patch(at, { merge: { spec: change } });
  }

  async delete(): Promise<void> {
    if (!this.#isDeleted) await this.#askToDelete();
    await this.#untilHolds("gone", async () => {
      if ((await getVm(this.world.client, name)) !== undefined) return false;
      return this.#saga.image === undefined || isImageGone(this.world.client);
    });
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
      // The epoch of an installation stays for as long as the installation does.
      pools: structuredClone(pools.filter(({ poolid }) => !poolid.startsWith("berth-epoch-"))),
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
      const isPaused = this.#ours().some((id) => isPausedNow(this.proxmox, id));
      return !isPaused && isReady(vm) && condition(vm, "Synced").startsWith("True");
    });
  }

  async #untilHolds(what: string, holds: () => Promise<boolean>): Promise<void> {
    const hasCome = await until(this.world, async () => {
      if (this.#program === undefined || this.#program.isCrashed) {
        this.#program = this.world.start({ web: webOf(this.world.clock) });
      }
      await this.#demandOneMachine();
      const { client } = this.world;
      await doAsTold({ client, proxmox: this.proxmox, ours: this.#ours() });
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

  /** Beside one that keeps disks between two lives. */
  async #demandOneMachine(): Promise<void> {
    const all = this.#ours().filter((id) => !isHusk(this.proxmox, id));
    if (all.length <= 1) return;
    const claims = (await listClaims(this.world.client)).map(({ spec }) => spec);
    // What was let go is nobody's any more.
    const others = claims.filter(
      ({ role, state }) => role === "DiskHolder" || state === "Released",
    );
    const ours = all.filter((id) => !others.some(({ externalId }) => externalId === id));
    assert.ok(ours.length <= 1, this.told(`more than one machine: ${ours.join()}`));
  }

  #ours(): string[] {
    const ids = Object.keys(this.proxmox.cluster.state.guests);
    return ids.filter((id) => !this.#strangers.has(id));
  }

  /**
   * Empty reservations of workers that were killed: no token may remove them, so each has to stand
   * in a Claim that was let go, where people find it. Then a person removes it. So it is with what
   * the saga itself lets go, and nobody came to take back; and with a disk that a dead worker had
   * attached: nobody knows how that ended, so the disk is kept.
   */
  async clearUp(): Promise<void> {
    const claims = (await listClaims(this.world.client)).map(({ spec }) => spec);
    const isLent = this.#saga.again !== undefined;
    const isLeft = (id: string): boolean => {
      return isLent || isHusk(this.proxmox, id) || isUnprovenHolder(claims, id);
    };
    for (const id of this.#ours().filter(isLeft)) {
      const claim = claims.find(({ externalId }) => externalId === id);
      assert.equal(claim?.state, "Released", this.told(`nobody knows of the machine ${id}`));
      destroyByHand(this.proxmox, id);
    }
    await this.#clearProbable();
  }

  /**
   * What a dead worker left on ZFS nothing proves to be Berth's. It has to be in a Claim, and Berth
   * reports it by an Orphan, by which a person approves that Berth removes it.
   */
  async #clearProbable(): Promise<void> {
    const { client } = this.world;
    const hasNone = async (): Promise<boolean> => {
      const claims = await listClaims(client);
      return claims.every(({ spec }) => (spec.probableVolumes ?? []).length === 0);
    };
    if (await hasNone()) return;
    await reportAtOnce(client);
    this.#program = this.world.start({ web: webOf(this.world.clock) });
    const { clock } = this.world;
    let nextMs = 0;
    const isClear = await until(this.world, async () => {
      if (clock.monotonicMs() < nextMs) return false;
      nextMs = clock.monotonicMs() + lookMs;
      await approveProbable(client);
      return hasNone();
    });
    this.#program.crash();
    assert.ok(isClear, this.told("what is probably Berth's is not reported or does not go"));
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
    return never();
  }

  async #askToDelete(): Promise<void> {
    if (this.#isDeleted) return;
    this.#isDeleted = true;
    await this.world.client.of(virtualMachineKind).delete(at);
    if (this.#saga.image !== undefined) await deleteImage(this.world.client);
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
    for (const dying of this.#saga.dying ?? []) {
      faults.onStep({
        verdict: { kind: "kill" },
        matches: ({ name: worker, steps }) =>
          `${worker.replace(/:.*/, "")}, step ${steps}` === dying,
      });
    }
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

function nameOf({ method, path }: PveRequest): string {
  return `${method} ${path.replaceAll(/[0-9a-f]{8,}[0-9a-f-]*/g, "…")}`;
}

/** A disk-holder VM with nothing but disks of which nobody knows whose they are. */
function isUnprovenHolder(claims: readonly ClaimSpec[], id: string): boolean {
  const claim = claims.find(({ externalId, role }) => externalId === id && role === "DiskHolder");
  return claim?.volumes?.every(({ proof }) => proof === "Followed") === true;
}
