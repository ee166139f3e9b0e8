import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { stillWaits } from "./beginning.ts";
import { declarationOf, type Turn } from "./turn.ts";

const key = "default/web";
const waitingFor = { kind: "Slot", name: "a free slot", since: "2026-01-02T03:04:05Z" } as const;

/** A VM that has been in line for so long; whether its status says so. */
function inLine(waitedMs: number, isTold: boolean): Turn {
  const vm: VirtualMachine = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name: "web", namespace: "default", generation: 1 },
    spec: {} as VirtualMachine["spec"],
    status: isTold ? { waitingFor } : {},
  };
  const deps = {
    clock: { nowMs: () => waitedMs, monotonicMs: () => waitedMs },
    slots: { isWaiting: (holder: string) => holder === key },
  };
  const memory = { line: { sinceMs: 0, declaration: declarationOf(vm) } };
  // cast: only these parts are looked at.
  return { key, vm, memory, deps } as unknown as Turn;
}

const minuteMs = 60_000;

describe("a VM in line for slots", () => {
  const cases = [
    { reason: "a short wait costs no write", waitedMs: 9_000, isTold: false, rests: true },
    { reason: "a longer one is told", waitedMs: 10_000, isTold: false, rests: false },
    { reason: "what was told is not told again", waitedMs: minuteMs, isTold: true, rests: true },
    { reason: "it is observed now and then", waitedMs: 5 * minuteMs, isTold: true, rests: false },
  ];
  for (const { reason, waitedMs, isTold, rests } of cases) {
    it(`${reason}: ${rests ? "it waits" : "it looks"}`, () => {
      assert.equal(stillWaits(inLine(waitedMs, isTold)) !== undefined, rests);
    });
  }
});
