import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import type { VmState } from "./status.ts";
import type { Waiting } from "./status-waiting.ts";
import { tellWait } from "./told-waits.ts";

const lockOf = (lock: string, holder = ""): Waiting => {
  return { kind: "Lock", name: `${lock}${holder}`, lock };
};
const waitingFor = (wait: Waiting): VmState => ({ is: "waiting", waitingFor: wait });
const working: VmState = { is: "working", reason: "Progressing", message: "" };
const resting: VmState = { is: "resting", drift: [], pending: [], isApplied: true };

/** Writes these states one after the other, and says what people were told. */
function toldOf(...states: readonly VmState[]): string[] {
  const told: string[] = [];
  const waits = (_: unknown, wait: { message: string }): void => void told.push(wait.message);
  const turn = { deps: { reports: { waits } as never }, memory: {}, vm: {} as VirtualMachine };
  let old: Waiting | undefined;
  for (const state of states) {
    tellWait(turn, state, old);
    old = state.is === "waiting" ? state.waitingFor : undefined;
  }
  return told;
}

describe("telling of waits", () => {
  const backup = waitingFor(lockOf("backup"));

  test("an attempt that was blocked by the same lock ends no wait", () => {
    assert.equal(toldOf(backup, working, backup, working, backup).length, 1);
  });

  test("a holder that becomes known makes no other lock, and another lock is another wait", () => {
    const held = waitingFor(
      lockOf("backup", ", held by the task UPID:1 since 2026-01-02T03:04:05Z"),
    );
    const left = waitingFor(lockOf("backup", ", left by the task UPID:1, which ended at 2026"));
    const snapshot = waitingFor(lockOf("snapshot"));
    assert.equal(toldOf(backup, held, left).length, 1);
    assert.deepEqual(toldOf(held, snapshot).at(-1), "Waits for the lock: snapshot.");
  });

  test("what came to rest in between has waited to its end", () => {
    assert.equal(toldOf(backup, working, resting, backup).length, 2);
  });

  test("what goes on by itself is not told", () => {
    const slot = waitingFor({ kind: "Slot", name: "a free slot" });
    const task = waitingFor({ kind: "Task", name: "the power state" });
    assert.deepEqual(toldOf(slot, task), []);
  });
});
