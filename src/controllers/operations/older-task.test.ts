import assert from "node:assert/strict";
import { test } from "node:test";
import { taskTimeSlackMs } from "../../hypervisor/index.ts";
import type { HypervisorDriver, RecalledTask } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { OperationMemory, resumeOperation } from "./index.ts";
import type { OperationDeps, OperationRecord, Subject } from "./index.ts";

const clock = new VirtualClock();
const startMs = clock.nowMs();
const uptimeMs = clock.monotonicMs();

/** What becomes of an operation whose reply was lost, and of which these tasks are recalled. */
async function settled(
  recalled: readonly RecalledTask[],
  last?: OperationRecord["last"],
  { setMs = 0, lastTask }: { readonly setMs?: number; readonly lastTask?: string } = {},
): Promise<string> {
  const record = {
    version: 1,
    id: "1",
    key: "k",
    step: "Start",
    target: "vm 200",
    argumentsDigest: "d",
    intent: "Start the VM.",
    attempt: 1,
    since: formatTime(startMs),
    windowMs: 60_000,
    clock: { boot: clock.bootId, uptimeMs },
    ...(last === undefined ? {} : { last }),
  } satisfies OperationRecord;
  const driver = {
    recall: () => Promise.resolve({ ok: true, value: recalled }),
    look: () => Promise.resolve({ state: "succeeded" }),
  } as unknown as HypervisorDriver;
  const subject = {
    holder: "vm",
    driver,
    hypervisor: "lab",
    object: () => ({ apiVersion: "v", kind: "VirtualMachine", metadata: { name: "web" } }),
    record: () => record,
    traitsOf: () => ({ windowMs: 60_000, works: ["Start"] }),
    recalls: () => ({ target: {} }),
    lastTask: () => lastTask,
    slotsOf: () => [],
    save: () => Promise.resolve(),
  } as unknown as Subject;
  const { bootId } = clock;
  const monotonicMs = (): number => clock.monotonicMs();
  const deps = {
    clock: { nowMs: () => clock.nowMs() + setMs, monotonicMs, bootId },
    memory: new OperationMemory(),
    slots: { assume: () => ({ release: () => undefined }) },
    pace: { learn: () => undefined },
    reports: { operated: () => undefined },
  } as unknown as OperationDeps;
  return (await resumeOperation(deps, subject))?.settlement.is ?? "";
}

function task(does: string, sinceMs: number, isRunning = false): RecalledTask {
  return { task: `${does} ${sinceMs}`, does, sinceMs, isRunning } as RecalledTask;
}

test("a task that began with the operation is its result", async () => {
  assert.equal(await settled([task("Start", startMs)]), "ended");
});

test("a task that began with the operation is its result, though its time is seconds off", async () => {
  assert.equal(await settled([task("Start", startMs - taskTimeSlackMs)]), "ended");
});

test("a task that began seconds before is not its result where the clock is known better", async () => {
  const exact = (sinceMs: number): RecalledTask => ({ ...task("Start", sinceMs), withinMs: 2_000 });
  assert.equal(await settled([exact(startMs - 3_000)]), "unconfirmed");
  assert.equal(await settled([exact(startMs - 2_000)]), "ended");
});

test("a task is not overlooked where Berth's own clock was set back since it began", async () => {
  const hourMs = 3_600_000;
  const set = { setMs: -hourMs };
  assert.equal(await settled([task("Start", startMs - hourMs)], undefined, set), "ended");
});

test("an older task of the same kind is not taken for the result of a request that was lost", async () => {
  assert.equal(await settled([task("Start", startMs - 60_000)]), "unconfirmed");
});

test("another work on the same VM is not taken for the result of a request that was lost", async () => {
  assert.equal(await settled([task("Stop", startMs)]), "unconfirmed");
});

test("the task of the operation before it is not its result, though both began in one second", async () => {
  const before = task("Start", startMs);
  const last = { key: "b", step: "Start", outcome: "Done", at: formatTime(startMs), times: 1 };
  const known = { ...last, outcome: "Done" as const, task: before.task };
  assert.equal(await settled([before], known), "unconfirmed");
  assert.equal(await settled([{ ...before, task: "own" }, before], known), "ended");
  assert.equal(await settled([before, { ...before, task: "older" }], known), "unconfirmed");
});

test("nor is it where its record is gone, because the VM was as declared in between", async () => {
  const before = task("Start", startMs);
  const known = { lastTask: before.task };
  assert.equal(await settled([before], undefined, known), "unconfirmed");
  const older = { ...before, task: "older" };
  assert.equal(await settled([before, older], undefined, known), "unconfirmed");
  assert.equal(await settled([{ ...before, task: "own" }, before], undefined, known), "ended");
});

test("other work that a late request began is waited for, and its end is not taken for a result", async () => {
  const late = task("Destroy", startMs + 1_000, true);
  assert.equal(await settled([late]), "unconfirmed");
  assert.equal(await settled([{ ...late, isRunning: false }]), "unconfirmed");
  clock.advance(70_000);
  assert.equal(await settled([late]), "unconfirmed");
  assert.equal(await settled([{ ...late, isRunning: false }]), "doubtful");
});
