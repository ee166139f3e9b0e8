import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Begun, Failure, Operation } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { OperationMemory, performOperation, resumeOperation, TaskPace } from "./index.ts";
import type {
  OpenHolder,
  OperationDeps,
  Performed,
  Resumed,
  Settlement,
  Subject,
} from "./index.ts";
import { keyOf, lastOf, openRecord, type OperationRecord } from "./record.ts";

const windowMs = 60_000;
const claim = { externalId: "100" };
const grow = { kind: "grow", claim, disk: "root", sizeBytes: 10 } as unknown as Operation;
const other = { kind: "grow", claim, disk: "data", sizeBytes: 10 } as unknown as Operation;
const done: Settlement = { is: "ended", outcome: "Done" };
const abandoned: Settlement = {
  is: "doubtful",
  outcome: "Abandoned",
  failure: { category: "UnknownOutcome", message: "no reply" },
};
const broken: Failure = { category: "NodeUnhealthy", message: "no list" };

interface Given {
  readonly before?: Resumed;
  readonly mayWrite?: boolean;
  readonly begun?: Begun;
  readonly failedTimes?: number;
  readonly isProof?: boolean;
  readonly inBackground?: boolean;
  readonly prepare?: () => Promise<Failure | undefined>;
  readonly open?: readonly OpenHolder[];
  /** The objects of some kind are not listed yet. */
  readonly isUnlisted?: boolean;
}

/** A process without memory, and everything that it did. */
class Stage {
  readonly clock = new VirtualClock();
  readonly memory = new OperationMemory();
  readonly sent: Operation[] = [];
  readonly written: OperationRecord[] = [];
  readonly saved: OperationRecord[] = [];
  readonly assumed: string[] = [];
  readonly waiting: string[] = [];
  /** Somebody wrote the object meanwhile: a write over the version that was read is refused. */
  isOutdated = false;
  readonly #given: Given;

  constructor(given: Given = {}) {
    this.#given = given;
  }

  opened(operation: Operation, change: Partial<OperationRecord> = {}): OperationRecord {
    const opening = { step: "Grow", operation, intent: "Grow.", windowMs, attempt: 1 };
    return { ...openRecord(opening, this.#deps()), ...change };
  }

  perform(operation: Operation, before = this.#given.before): Promise<Performed> {
    const { prepare, failedTimes = 0 } = this.#given;
    return performOperation(this.#deps(), this.#subject(), {
      planned: {
        step: "Grow",
        operation,
        intent: "Grow.",
        slots: ["node n1"],
        failedTimes,
        ...(this.#given.inBackground === true ? { inBackground: true } : {}),
      },
      before,
      wake: () => undefined,
      ...(prepare === undefined ? {} : { prepare }),
      write: async (record) => {
        await Promise.resolve();
        this.written.push(record);
      },
    });
  }

  /** No reply came to it, and another operation removes what it may have left. */
  async cleanUp(record: OperationRecord | undefined): Promise<OperationRecord> {
    assert.ok(record !== undefined);
    await this.perform(other, ended(record, abandoned));
    const written = this.written.at(-1);
    assert.ok(written !== undefined);
    return written;
  }

  resume(record: OperationRecord): Promise<Resumed | undefined> {
    return resumeOperation(this.#deps(), { ...this.#subject(), record: () => record });
  }

  #deps(): OperationDeps {
    const lease = { release: () => undefined };
    return {
      clock: this.clock,
      random: { number: () => 0, bytes: () => new Uint8Array(), uuid: () => "id" },
      memory: this.memory,
      pace: new TaskPace(),
      slots: {
        tryAcquire: () => lease,
        assume: (names: readonly string[], holder: string) => {
          this.assumed.push(...names.map((name) => `${holder}: ${name}`));
          return lease;
        },
      },
      reports: { opened: () => undefined, operated: () => undefined },
      fence: { mayWrite: () => this.#given.mayWrite ?? true },
      openOperations: {
        list: () => (this.#given.isUnlisted === true ? undefined : (this.#given.open ?? [])),
        whenListed: (holder: string) => this.waiting.push(holder),
      },
      epochOf: () => undefined,
    } as unknown as OperationDeps;
  }

  #save(record: OperationRecord): Promise<void> {
    if (this.isOutdated) return Promise.reject(new Error("409"));
    this.saved.push(record);
    return Promise.resolve();
  }

  #subject(): Subject {
    const { begun = { outcome: "task", task: "t" }, isProof = false } = this.#given;
    const driver = {
      begin: (operation: Operation) => {
        this.sent.push(operation);
        return Promise.resolve(begun);
      },
      recall: () => Promise.resolve({ ok: true, value: [] }),
      look: () => Promise.resolve({ state: "running" }),
    };
    return {
      holder: "vm",
      driver,
      hypervisor: "lab",
      object: () => ({ apiVersion: "v", kind: "VirtualMachine", metadata: { name: "web" } }),
      record: () => undefined,
      traitsOf: () => ({ windowMs, works: ["Grow"], isProof }),
      recalls: () => ({ target: {} }),
      slotsOf: () => [],
      save: (record: OperationRecord) => this.#save(record),
      saveBlocked: (record: OperationRecord) => this.#save(record),
    } as unknown as Subject;
  }
}

function ended(record: OperationRecord, settlement: Settlement): Resumed {
  return { record, settlement };
}

describe("an operation that is to be performed", () => {
  it("is not sent while this process may not write", async () => {
    const stage = new Stage({ mayWrite: false });
    assert.equal((await stage.perform(grow)).is, "fenced");
    assert.deepEqual([stage.sent, stage.written], [[], []]);
  });

  it("is not sent if the ledger could not be prepared for it", async () => {
    const stage = new Stage({ prepare: () => Promise.resolve(broken) });
    assert.deepEqual(await stage.perform(grow), { is: "unprepared", failure: broken });
    assert.deepEqual([stage.sent, stage.written], [[], []]);
  });

  it("is not sent again at once when a lock was in its way", async () => {
    const stage = new Stage();
    const before = ended(stage.opened(grow), { is: "blocked", waitsFor: "a lock" });
    assert.equal((await stage.perform(grow, before)).is, "blocked");
    assert.deepEqual(stage.sent, []);
  });

  it("does not wait for a lock that was in the way of another one", async () => {
    const stage = new Stage();
    const before = ended(stage.opened(other), { is: "blocked", waitsFor: "a lock" });
    assert.equal((await stage.perform(grow, before)).is, "performed");
  });

  it("is not called in vain because another one was", async () => {
    const stage = new Stage();
    const record = stage.opened(other);
    const { key = "" } = record;
    const last = { key, step: "Grow", outcome: "Done" as const, at: record.since, times: 2 };
    const performed = await stage.perform(grow, ended({ ...record, last }, done));
    assert.equal(performed.is, "performed");
    const again = await stage.perform(other, ended({ ...record, last }, done));
    assert.equal(again.is, "vain");
  });

  it("is called in vain after once where it failed before, whatever failed since", async () => {
    for (const [failedTimes, is] of [
      [0, "performed"],
      [1, "vain"],
    ] as const) {
      const stage = new Stage({ failedTimes });
      assert.equal((await stage.perform(grow, ended(stage.opened(grow), done))).is, is);
    }
  });

  it("is not called in vain for what was done before it, or ended in another way", async () => {
    const stage = new Stage();
    const record = stage.opened(grow);
    const { key } = keyOf(other);
    const last = { step: "Grow", at: record.since, times: 5 };
    const others = { ...record, last: { ...last, key, outcome: "Done" as const } };
    assert.equal((await stage.perform(grow, ended(others, done))).is, "performed");
    const changed = { ...last, key: record.key ?? "", outcome: "Changed" as const };
    const same = ended({ ...record, last: changed }, done);
    assert.equal((await stage.perform(grow, same)).is, "performed");
  });

  it("has failed where its task was lost, though other steps were done since", async () => {
    const stage = new Stage();
    const at = formatTime(stage.clock.nowMs());
    const { key = "" } = stage.opened(grow);
    const last = { key, step: "Grow", outcome: "Lost", at, times: 1 } as const;
    const [first, second] = [20, 30].map((sizeBytes) => ({ ...grow, sizeBytes }) as Operation);
    assert.ok(first !== undefined && second !== undefined);
    await stage.perform(second, ended(stage.opened(first, { last }), done));
    const [between] = stage.written;
    assert.ok(between !== undefined);
    assert.deepEqual(between.unfinished, [last]);
    const performed = await stage.perform(grow, ended(between, done));
    assert.equal(performed.is, "vain");
    assert.equal(stage.sent.length, 1);
  });

  it("waits longer each time for a lock, though another step is done before each attempt", async () => {
    const stage = new Stage();
    const locked: Settlement = { is: "blocked", waitsFor: "a lock" };
    let blocked = stage.opened(grow);
    for (const [index, waitMs] of [2_000, 4_000, 8_000].entries()) {
      await stage.perform(other, ended(blocked, locked));
      const between = stage.written.at(-1);
      assert.ok(between !== undefined);
      assert.deepEqual(await stage.perform(grow, ended(between, done)), { is: "blocked", waitMs });
      stage.clock.advance(waitMs);
      assert.equal((await stage.perform(grow, ended(between, done))).is, "performed");
      blocked = stage.written.at(-1) ?? blocked;
      assert.equal(blocked.unfinished?.[0]?.times, index + 1);
    }
    await stage.perform(other, ended(blocked, done));
    const after = stage.written.at(-1);
    assert.deepEqual([after?.last?.outcome, after?.unfinished], ["Done", undefined]);
  });

  it("has failed where no reply came twice, though what it left was removed in between", async () => {
    const stage = new Stage();
    const first = await stage.cleanUp(stage.opened(grow));
    assert.equal((await stage.perform(grow, ended(first, done))).is, "performed");
    const second = stage.written.at(-1);
    assert.equal(second?.attempt, 2);
    const cleaned = await stage.cleanUp(second);
    const again = await stage.perform(grow, ended(cleaned, done));
    assert.ok(again.is === "vain");
    assert.equal(again.failure.category, "UnknownOutcome");
    assert.deepEqual(cleaned.last?.times, 2);
  });

  it("has failed where no reply came once more after a failure, cleaned up or not", async () => {
    const stage = new Stage({ failedTimes: 1 });
    const record = stage.opened(grow);
    assert.equal((await stage.perform(grow, ended(record, abandoned))).is, "vain");
    const cleaned = await stage.cleanUp(record);
    assert.equal((await stage.perform(grow, ended(cleaned, done))).is, "vain");
  });

  it("has failed though the removal of what it left was blocked, or lost, before it was done", async () => {
    const stage = new Stage({ failedTimes: 1 });
    const locked: Settlement = { is: "blocked", waitsFor: "a lock" };
    for (const settlement of [locked, abandoned]) {
      const blocked = await stage.cleanUp(stage.opened(grow));
      const removal = new Stage();
      removal.clock.advance(60_000);
      await removal.perform(other, ended(blocked, settlement));
      const [removed] = removal.written;
      assert.ok(removed !== undefined);
      assert.equal((await stage.perform(grow, ended(removed, done))).is, "vain");
    }
  });

  it("is not counted once it was done, or if it never ended without a result", async () => {
    const stage = new Stage();
    const cleaned = await stage.cleanUp(stage.opened(grow));
    await stage.perform(grow, ended(cleaned, done));
    const sent = stage.written.at(-1);
    assert.ok(sent !== undefined);
    await stage.perform(other, ended(sent, done));
    assert.equal(stage.written.at(-1)?.unfinished, undefined);
  });

  it("does not count the attempts at another one", async () => {
    const stage = new Stage();
    await stage.perform(grow, ended(stage.opened(other, { attempt: 4 }), done));
    await stage.perform(grow, ended(stage.opened(grow, { attempt: 4 }), done));
    assert.deepEqual(
      stage.written.map(({ attempt }) => attempt),
      [1, 5],
    );
  });

  it("has in its record how the one before it ended, for a process without memory", async () => {
    const stage = new Stage();
    const record = stage.opened(grow);
    await stage.perform(grow, ended(record, done));
    const [written] = stage.written;
    assert.deepEqual(written?.last, lastOf(record, "Done", stage.clock.nowMs()));
  });

  it("has its slots in its record, and takes those of all records before its own", async () => {
    const record = new Stage().opened(other, { slots: ["storage s"] });
    const stage = new Stage({ open: [{ holder: "another vm", record }] });
    await stage.perform(grow);
    assert.deepEqual(stage.assumed, ["another vm: storage s"]);
    assert.deepEqual(stage.written[0]?.slots, ["node n1"]);
  });

  it("is not sent while nobody knows which slots open operations hold", async () => {
    const stage = new Stage({ isUnlisted: true });
    assert.equal((await stage.perform(grow)).is, "queued");
    assert.deepEqual([stage.sent, stage.written, stage.waiting], [[], [], ["vm"]]);
  });

  it("has in its record that it was done, where nothing else will ever show it", async () => {
    const stage = new Stage({ isProof: true, begun: { outcome: "done" } });
    await stage.perform(grow);
    assert.deepEqual(
      stage.saved.map(({ outcome }) => outcome),
      ["Done"],
    );
  });
});

describe("how an operation ended that the status does not tell yet", () => {
  const refused: Begun = { outcome: "refused", failure: broken };
  const locked: Begun = { outcome: "blocked", waitsFor: "a lock" };

  it("is told before anything else is sent, where it failed", async () => {
    for (const operation of [grow, other]) {
      const stage = new Stage();
      const settlement = { is: "failed", outcome: "Refused", failure: broken } as const;
      const before = ended(stage.opened(grow), settlement);
      assert.deepEqual(await stage.perform(operation, before), { is: "unreported", before });
      assert.deepEqual([stage.sent, stage.written], [[], []]);
    }
  });

  it("is found by every turn until then, also of a request that nobody waited for", async () => {
    for (const inBackground of [false, true]) {
      const stage = new Stage({ begun: refused, inBackground });
      await stage.perform(grow);
      await Promise.resolve();
      const record = stage.opened(grow);
      for (let turns = 0; turns < 3; turns += 1) {
        const found = await stage.resume(record);
        assert.ok(found !== undefined);
        assert.equal(found.settlement.is, "failed");
        assert.equal((await stage.perform(grow, found)).is, "unreported");
      }
      assert.equal(stage.sent.length, 1);
    }
  });

  it("is in its record where it was blocked, for a process without memory", async () => {
    const stage = new Stage({ begun: locked });
    await stage.perform(grow);
    const [saved] = stage.saved;
    assert.equal(saved?.outcome, "Blocked");
    stage.memory.forgetAll();
    const found = await stage.resume(saved);
    assert.equal(found?.settlement.is, "blocked");
    assert.equal((await stage.perform(grow, found)).is, "blocked");
    assert.equal(stage.saved.length, 1, "it is written once");
  });

  for (const { name, given, outcome } of [
    { name: "blocked", given: { begun: locked }, outcome: "Blocked" },
    { name: "done", given: { begun: { outcome: "done" }, isProof: true }, outcome: "Done" },
  ] as const) {
    it(`is written by the next turn where it was ${name} and the write was refused`, async () => {
      const stage = new Stage(given);
      stage.isOutdated = true;
      await assert.rejects(stage.perform(grow), /409/);
      await assert.rejects(stage.resume(stage.opened(grow)), /409/);
      stage.isOutdated = false;
      await stage.resume(stage.opened(grow));
      assert.deepEqual(
        stage.saved.map((one) => one.outcome),
        [outcome],
      );
      assert.equal(stage.sent.length, 1);
    });
  }
});

describe("an operation that a process without memory finds", () => {
  it("has no more time than its record says", async () => {
    const stage = new Stage();
    const record = stage.opened(grow);
    stage.clock.advance(windowMs - 1);
    assert.equal((await stage.resume(record))?.settlement.is, "unconfirmed");
    stage.memory.forgetAll();
    stage.clock.advance(1);
    assert.equal((await stage.resume(record))?.settlement.is, "doubtful");
  });

  it("is taken over durably if it is of another boot, or its time would never pass", async () => {
    const stage = new Stage();
    const record = stage.opened(grow, { clock: { boot: "another", uptimeMs: 1 } });
    assert.equal((await stage.resume(record))?.settlement.is, "unconfirmed");
    assert.deepEqual(
      stage.saved.map((one) => one.clock?.boot),
      [stage.clock.bootId],
    );
  });

  it("is asked about as seldom as its age allows, and not as if it were new", async () => {
    const stage = new Stage();
    const record = stage.opened(grow, { task: "t" });
    stage.clock.advance(5_000);
    await stage.resume(record);
    assert.equal(stage.memory.of("vm", record.id).task?.runningMs, 5_000);
    const elsewhere = stage.opened(grow, { task: "t", clock: { boot: "another", uptimeMs: 1 } });
    stage.memory.forgetAll();
    stage.clock.advance(7_000);
    await stage.resume(elsewhere);
    assert.equal(stage.memory.of("vm", elsewhere.id).task?.runningMs, 7_000);
  });

  it("has its task in its record within ten seconds, whatever the date is set to", async () => {
    for (const setMs of [-3_600_000, 0, 3_600_000]) {
      const stage = new Stage();
      const since = formatTime(stage.clock.nowMs() + setMs);
      const record = stage.opened(grow, { since });
      const task = { handle: "t", sinceMs: stage.clock.monotonicMs(), isFound: false };
      stage.memory.of("vm", record.id).task = task;
      stage.clock.advance(8_000);
      await stage.resume(record);
      assert.deepEqual(stage.saved, [], "a task that ends soon costs no write");
      stage.clock.advance(1_500);
      const resumed = await stage.resume(record);
      assert.deepEqual(stage.saved, [{ ...record, task: "t" }]);
      assert.equal(resumed?.record.task, "t");
    }
  });

  it("is not settled by what is remembered of another one", async () => {
    const stage = new Stage();
    stage.memory.of("vm", "older").settlement = done;
    assert.equal((await stage.resume(stage.opened(grow)))?.settlement.is, "unconfirmed");
  });
});
