import assert from "node:assert/strict";
import { test } from "node:test";
import type { VirtualMachine } from "../api/index.ts";
import { hasCountedAttempts } from "./related.ts";

function failing(category: string, step?: string): VirtualMachine {
  const failure = { category, ...(step === undefined ? {} : { step }) };
  return { status: { failure } } as unknown as VirtualMachine;
}

test("a step of which few attempts are made keeps its time, whatever else changes", () => {
  assert.equal(hasCountedAttempts(failing("CreationFailed", "AddDisk")), true);
});

test("what waits for space, a node or a person is tried when the hypervisor changes", () => {
  for (const category of ["QuotaExceeded", "NodeUnhealthy", "OrphanedVolumes", "LockError"]) {
    assert.equal(hasCountedAttempts(failing(category, "AddDisk")), false, category);
  }
  assert.equal(hasCountedAttempts(failing("CreationFailed")), false);
  assert.equal(hasCountedAttempts({} as VirtualMachine), false);
});
