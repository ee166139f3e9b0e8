import assert from "node:assert/strict";
import type { NewVolume } from "../allocation.ts";
import type {
  Begun,
  DriverNotes,
  Fence,
  HypervisorDriver,
  ObserveHints,
  Seen,
  TaskView,
} from "../contract.ts";
import type { Machine, NewDisk, Shape } from "../machine.ts";
import type { Basis, ClaimedMachine, Operation } from "../operation.ts";

/** One hypervisor to test a driver on, made anew for every test, and a way to look behind it. */
export interface Stage {
  readonly driver: HypervisorDriver;
  readonly node: string;
  readonly storage: string;
  readonly network: string;
  /** An image that a disk can be filled from; absent where this hypervisor has none. */
  readonly image?: { readonly volume: string; readonly sizeBytes: number };
  /** Another storage for disks on the same node, and one that takes discs. */
  readonly otherStorage: string;
  readonly discStorage: string;
  /** Another node, which a machine can be moved to. */
  readonly otherNode: string;
  readonly behind: Behind;
  /** Lets the hypervisor's time pass until the work is done. */
  settle<T>(work: Promise<T>): Promise<T>;
  /** Lets the hypervisor's time pass. */
  pass(ms: number): Promise<void>;
  nowMs(): number;
}

/** What can happen to a hypervisor without the driver. */
export interface Behind {
  /** Ids of all machines that stand there, husks included. */
  machines(): string[];
  /** Ids of all volumes that belong to machines. */
  volumes(): string[];
  /** Somebody else makes a machine under an id. */
  strangerTakes(externalId: string): void;
  /**
   * Somebody copies a machine with all its notes to another id. A clone gets another identity, a
   * backup that is restored beside its original has the same.
   */
  copy(externalId: string, copyId: string, as: "clone" | "restore"): void;
  /**
   * Somebody changes the notes of a machine by hand, with the mark in them where this hypervisor
   * keeps it there.
   */
  writeNotes(externalId: string, change: (notes: string) => string): void;
  /** Somebody removes the mark of a machine, wherever this hypervisor keeps it. */
  removeMark(externalId: string): void;
  /** Somebody installs a system on a machine's disks: it obeys, and has an agent if it may. */
  installSystem(externalId: string): void;
  /** Somebody makes a template of a machine. */
  makeTemplate(externalId: string): void;
  /** A volume under an id that nothing refers to. Its id is returned. */
  leaveVolume(externalId: string): string;
  /** The next write is done and its reply is lost; or it never arrives. */
  loseNext(what: "reply" | "request"): void;
  /** A task's worker dies without a word. */
  kill(task: string): void;
  /** Nobody answers any more. */
  cutOff(): void;
}

const open: Fence = { mayWrite: () => true };

const gibibyte = 1024 ** 3;

/** A stage with the acts that most tests begin with. */
export class Bench {
  readonly stage: Stage;

  constructor(stage: Stage) {
    this.stage = stage;
  }

  get driver(): HypervisorDriver {
    return this.stage.driver;
  }

  /** A Claim whose id was listed and found free. */
  async claim(name = "web"): Promise<ClaimedMachine> {
    const claim = await this.proposed(name);
    const notes = await this.#listed(claim);
    return notes === undefined ? claim : { ...claim, driver: notes };
  }

  /** A Claim of a free id, before anything was listed under it. */
  async proposed(name = "web"): Promise<ClaimedMachine> {
    const proposal = await this.stage.settle(this.driver.propose([]));
    assert(proposal.ok, JSON.stringify(proposal));
    return {
      externalId: proposal.value,
      identity: identityFor(proposal.value),
      installation: "7f3f3b52-90b4-4b6b-9d39-0c9f5a4be001",
      owner: { namespace: "conformance", name },
      node: this.stage.node,
      otherVolumes: [],
      reservedAt: new Date(this.stage.nowMs()).toISOString(),
    };
  }

  /** What the driver notes when it lists the id before anything is created there. */
  async #listed(claim: ClaimedMachine): Promise<DriverNotes | undefined> {
    const { node, otherStorage: storage } = this.stage;
    const disks = [this.blank("root"), { ...this.blank("data"), storage }];
    const draft = { claim, node, shape: {}, disks };
    return (await this.stage.settle(this.driver.preflight(draft))).notes;
  }

  observe(claim: ClaimedMachine, hints?: ObserveHints): Promise<Seen> {
    return this.stage.settle(this.driver.observe(claim, hints));
  }

  /** The Claim with the volumes that its machine has now, as a controller would write them down. */
  async bound(claim: ClaimedMachine): Promise<ClaimedMachine> {
    const { volumes, node } = await this.ours(claim);
    const known = volumes
      .filter(({ isOwn }) => isOwn)
      .map(({ id, role, storage, state, disk }) => {
        const named = disk === undefined ? {} : { disk };
        return { id, role, storage, state, ...named, proof: "Config" } as const;
      });
    return { ...claim, node, volumes: known };
  }

  async ours(claim: ClaimedMachine): Promise<Machine> {
    const seen = await this.observe(claim);
    assert(seen.at === "ours", `not ours: ${JSON.stringify(seen)}`);
    return seen.machine;
  }

  begin(operation: Operation, fence = open): Promise<Begun> {
    return this.stage.settle(this.driver.begin(operation, fence));
  }

  /** The Claim with what the operation is about to allocate, as it is before that begins. */
  async allocating(operation: Operation & { claim: ClaimedMachine }): Promise<ClaimedMachine> {
    const { claim } = operation;
    const operationId = "00000000-0000-4000-8000-0000000000a1";
    if (this.driver.allocating === undefined) return claim;
    const found = await this.stage.settle(this.driver.allocating(operation, operationId));
    assert(found.ok, JSON.stringify(found));
    if (found.value === undefined) return claim;
    const { sizeBytes, listed, also = [], ...place } = found.value;
    const allocation = {
      ...place,
      ...(also.length === 0 ? {} : { also: also.map(sized) }),
      operation: operationId,
      since: new Date(this.stage.nowMs()).toISOString(),
      listed: [...listed],
      ...(sizeBytes === undefined ? {} : { size: String(sizeBytes) }),
    };
    return { ...claim, allocation };
  }

  /** Begins an operation and sees it through. */
  async carryOut(operation: Operation): Promise<TaskView> {
    const begun = await this.begin(operation);
    if (begun.outcome === "done") return { state: "succeeded" };
    if (begun.outcome === "progressed") return await this.carryOut(await this.#anew(operation));
    assert(begun.outcome === "task", `${operation.kind}: ${JSON.stringify(begun)}`);
    return await this.end(begun.task);
  }

  /** The same on the machine as it is now: an effect has made another version of it. */
  async #anew(operation: Operation): Promise<Operation> {
    if (!("at" in operation)) return operation;
    return { ...operation, at: await this.at(operation.claim) };
  }

  async succeed(operation: Operation): Promise<void> {
    const end = await this.carryOut(operation);
    assert.equal(end.state, "succeeded", `${operation.kind}: ${JSON.stringify(end)}`);
  }

  /** Looks at a task until it has ended. */
  async end(task: string): Promise<TaskView> {
    for (let looks = 0; looks < 1000; looks++) {
      const view = await this.stage.settle(this.driver.look(task));
      if (view.state !== "running") return view;
      await this.stage.pass(500);
    }
    throw new Error(`the task ${task} does not end`);
  }

  /** A marked machine without disks. */
  async shell(shape: Shape = {}): Promise<ClaimedMachine> {
    const claim = await this.claim();
    const { node } = this.stage;
    const disks = [{ name: "root" }, { name: "data" }];
    await this.succeed({ kind: "create", claim, node, shape: { name: "web", disks, ...shape } });
    return claim;
  }

  /** The same with a blank disk. */
  async machine(shape: Shape = {}): Promise<ClaimedMachine> {
    const claim = await this.shell(shape);
    await this.succeed({
      kind: "addDisk",
      claim,
      at: await this.at(claim),
      disk: this.blank("root"),
      bootOrder: ["root"],
    });
    return claim;
  }

  blank(name: string, gibibytes = 2): NewDisk {
    const { storage } = this.stage;
    return { name, storage, sizeBytes: gibibytes * gibibyte, fill: { from: "blank" } };
  }

  async at(claim: ClaimedMachine): Promise<Basis> {
    const { node, version } = await this.ours(claim);
    return { node, version };
  }
}

/** A UUID that is different for every id. */
function identityFor(externalId: string): string {
  const digits = Buffer.from(externalId).toString("hex").padStart(12, "0").slice(-12);
  return `c0ffee00-0000-4000-8000-${digits}`;
}

/** What every driver must do, by the sentence that says so. */
export type Laws = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

function sized({ storage, sizeBytes }: NewVolume): { storage: string; size?: string } {
  return { storage, ...(sizeBytes === undefined ? {} : { size: String(sizeBytes) }) };
}
