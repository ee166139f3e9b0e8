import assert from "node:assert/strict";
import { test } from "node:test";
import { formatTime } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { createMakingTime } from "./making-time.ts";

const startMs = Date.UTC(2026, 0, 2);

function machine(ready: "True" | "False", createdMs = startMs, isDeleting = false): KubeObject {
  const deletion = isDeleting ? { deletionTimestamp: formatTime(createdMs) } : {};
  const metadata = { name: "a", creationTimestamp: formatTime(createdMs), ...deletion };
  const status = { conditions: [{ type: "Ready", status: ready }] };
  return { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", metadata, status };
}

test("all runs of a new machine are added up, and told once, when it is Ready", () => {
  const told: number[] = [];
  const time = createMakingTime(startMs, (ms) => told.push(ms));
  time.spent("a", 10, machine("False"));
  time.spent("b", 1, machine("False"));
  time.spent("a", 20, machine("False"));
  assert.deepEqual(told, []);
  time.spent("a", 5, machine("True"));
  time.spent("a", 7, machine("False"));
  time.spent("a", 7, machine("True"));
  assert.deepEqual(told, [35]);
});

test("one that was there before is not told, nor one that is going", () => {
  const told: number[] = [];
  const time = createMakingTime(startMs, (ms) => told.push(ms));
  time.spent("old", 10, machine("True", startMs - 60_000));
  time.spent("going", 10, machine("False"));
  time.spent("going", 10, machine("True", startMs, true));
  assert.deepEqual(told, []);
  time.spent("going", 3, machine("True"));
  assert.deepEqual(told, [3], "a new one of the same name begins from nothing");
});
