import assert from "node:assert/strict";
import { it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { claim, machine } from "./fixture.ts";
import { statusOf, type VmView } from "./status.ts";

const at = "2026-01-02T03:04:05Z";
const message = "No answer.";

it("a VM is not called Ready while its hypervisor does not answer, whatever was seen before", () => {
  const ready = { type: "Ready", status: "True", reason: "Succeeded", message: "It runs." };
  const vm = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { namespace: "default", name: "web", generation: 1 },
    spec: { hypervisorRef: { name: "hv" }, powerState: "Running" },
    status: { disks: [], conditions: [{ ...ready, lastTransitionTime: at }] },
  } as unknown as VirtualMachine;
  const failure = { category: "NetworkError", message } as const;
  const told = { ...failure, attempts: 1, firstAt: at, lastAt: at };
  const view = {
    state: { is: "failed", failure: told, isStalled: false },
    seen: { at: "unknown", failure },
    claim,
  } as unknown as VmView;
  const { conditions = [] } = statusOf(vm, view, 0);
  const found = conditions.find(({ type }) => type === "Ready");
  assert.deepEqual([found?.status, found?.reason], ["Unknown", "Unreachable"]);
});

it("a VM that is being created is not said not to exist", () => {
  const vm = {
    metadata: { namespace: "default", name: "web", generation: 1 },
    spec: { hypervisorRef: { name: "hv" }, powerState: "Running" },
  } as unknown as VirtualMachine;
  const state = { is: "working", reason: "Creating", message: "Make the disk." };
  const coming = { ...claim, everExisted: false };
  const running = (seen: object): string | undefined => {
    const view = { state, seen, claim: coming } as unknown as VmView;
    return statusOf(vm, view, 0).conditions?.find(({ type }) => type === "Running")?.message;
  };
  const unasked = { ...machine, power: "Unknown" };
  assert.equal(running({ at: "ours", machine: unasked }), "It has not been started yet.");
  assert.equal(running({ at: "absent" }), "The VM does not exist.");
});
