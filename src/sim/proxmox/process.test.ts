import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { child, locked, type Outcome, type Process, ProcessTable, work } from "./process.ts";

function table(): { clock: VirtualClock; processes: ProcessTable; ends: Outcome<void>["kind"][] } {
  const clock = new VirtualClock();
  return { clock, processes: new ProcessTable(clock), ends: [] };
}

const lock = { key: "pve1:lock", timeoutMs: 1_000, timeoutText: "got timeout" };

test("effects happen one after the other, on the clock", () => {
  const { clock, processes } = table();
  const seen: number[] = [];
  const body = function* (): Process<void> {
    seen.push(clock.monotonicMs());
    yield* work("a", 10);
    seen.push(clock.monotonicMs());
    yield* work("b", 5);
    seen.push(clock.monotonicMs());
  };
  processes.start({ pid: 1, node: "n", name: "p", body: body(), onEnd: () => undefined });
  clock.advance(100);
  assert.deepEqual(seen, [0, 10, 15]);
  assert.equal(clock.timers, 0);
});

test("a killed process does nothing more, not even its clean-up, and its flock is free", () => {
  const { clock, processes, ends } = table();
  let isCleaned = false;
  const body = function* (): Process<void> {
    try {
      yield* locked(lock, () => work("long", 10_000));
    } finally {
      isCleaned = true;
    }
  };
  const onEnd = ({ kind }: Outcome<void>): void => void ends.push(kind);
  processes.start({ pid: 1, node: "n", name: "p", body: body(), onEnd });
  assert.ok(processes.locks.isHeld(lock.key));
  assert.ok(processes.kill(1));
  clock.advance(20_000);
  assert.deepEqual(ends, ["killed"]);
  assert.equal(isCleaned, false);
  assert.equal(processes.locks.isHeld(lock.key), false);
});

test("a terminated process cleans up, and is killed if that takes too long", () => {
  const { clock, processes, ends } = table();
  const seen: string[] = [];
  const body = function* (): Process<void> {
    try {
      yield* work("long", 60_000);
    } finally {
      seen.push("begins to clean up");
      yield* work("slow clean-up", 60_000);
      seen.push("never");
    }
  };
  const onEnd = ({ kind }: Outcome<void>): void => void ends.push(kind);
  processes.start({ pid: 1, node: "n", name: "p", body: body(), onEnd });
  processes.terminate(1);
  clock.advance(4_999);
  assert.deepEqual([seen, ends], [["begins to clean up"], []]);
  clock.advance(2);
  assert.deepEqual(ends, ["killed"]);
});

test("a child goes on when its parent is killed, but not when the power fails", () => {
  for (const how of ["kill", "crash"] as const) {
    const { clock, processes } = table();
    let isWritten = false;
    const body = child("qemu-img", 100, () => (isWritten = true));
    processes.start({ pid: 1, node: "n", name: "p", body, onEnd: () => undefined });
    if (how === "kill") processes.kill(1);
    else processes.crash("n");
    clock.advance(1_000);
    assert.equal(isWritten, how === "kill");
  }
});

test("an orphaned child ends with its node", () => {
  const { clock, processes } = table();
  let isWritten = false;
  const body = child("qemu-img", 100, () => (isWritten = true));
  processes.start({ pid: 1, node: "n", name: "p", body, onEnd: () => undefined });
  processes.kill(1);
  processes.crash("n");
  clock.advance(1_000);
  assert.equal(isWritten, false);
});

test("who waits for a flock gets it in turn, or is told that it took too long", () => {
  const { clock, processes } = table();
  const seen: string[] = [];
  const hold = (name: string, durationMs: number): void => {
    const body = locked(lock, () => work(name, durationMs));
    const onEnd = (outcome: Outcome<void>): void => {
      const text = outcome.kind === "failed" ? String(outcome.error) : outcome.kind;
      seen.push(`${name} ${text} at ${clock.monotonicMs()}`);
    };
    processes.start({ pid: seen.length + name.charCodeAt(0), node: "n", name, body, onEnd });
  };
  hold("a", 600);
  hold("b", 600);
  hold("c", 600);
  clock.advance(5_000);
  assert.deepEqual(seen, ["a done at 600", "c Error: got timeout at 1000", "b done at 1200"]);
});

test("shared flocks are held together, an exclusive one alone", () => {
  const { clock, processes } = table();
  const shared = { ...lock, isShared: true };
  const ends: number[] = [];
  for (const [index, request] of [shared, shared, lock].entries()) {
    const body = locked(request, () => work("hold", 100));
    const onEnd = (): void => void ends.push(clock.monotonicMs());
    processes.start({ pid: index + 1, node: "n", name: "p", body, onEnd });
  }
  clock.advance(1_000);
  assert.deepEqual(ends, [100, 100, 200]);
});
