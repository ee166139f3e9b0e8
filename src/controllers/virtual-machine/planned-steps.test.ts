import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Change, Machine } from "../../hypervisor/index.ts";
import { claim, declared, gib, machine, reserved } from "./fixture.ts";
import type { Declared, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";
import { plannedSteps } from "./planned-steps.ts";

/** What would be done, as "effect: intent", by the plan for this input. */
function stepsOf(input: Partial<PlanInput>): string[] {
  const whole = { declared, claim, seen: { at: "ours", machine }, nowMs: 0, ...input } as PlanInput;
  const next = planVm(whole);
  assert.ok(next.do === "step" || next.do === "finish", next.do);
  return plannedSteps(whole, next).map(({ effect, intent }) => `${effect}: ${intent}`);
}

function ours(more: Partial<Machine>): PlanInput["seen"] {
  return { at: "ours", machine: { ...machine, ...more } };
}

const larger: Declared = { ...declared, shape: { name: "web", memory: { sizeBytes: 2 * gib } } };
const memory = `Change: Change memory.sizeBytes from ${gib} to ${2 * gib}.`;
const shutdown = "Ask the guest to shut down, within 60 s.";

function costs(cost: Change["class"]): Pick<PlanInput, "changeOf"> {
  return { changeOf: () => ({ class: cost, detail: "" }) };
}

describe("what a copy that only observes would do", () => {
  it("names the fields with what they are and become", () => {
    assert.deepEqual(stepsOf({ declared: larger, ...costs("Live") }), [memory]);
  });

  it("also names the start that follows a change", () => {
    const off = { declared: larger, seen: ours({ power: "Stopped" }) };
    assert.deepEqual(stepsOf(off), [memory, "Start: Start the machine."]);
  });

  it("also names the restart that a change needs and may have", () => {
    const reboot = { ...larger, updatePolicy: "Reboot" } as const;
    const steps = stepsOf({ declared: reboot, ...costs("Reboot") });
    assert.deepEqual(steps, [memory, "Restart: Restart the guest for: memory.sizeBytes."]);
    const powerOff = { ...larger, updatePolicy: "PowerOff" } as const;
    const off = stepsOf({ declared: powerOff, ...costs("PowerOff") });
    assert.deepEqual(off, [memory, `Restart: ${shutdown}`]);
  });

  it("tells a restart that was asked for from a shutdown", () => {
    assert.deepEqual(stepsOf({ declared: { ...declared, wantsRestart: true } }), [
      `Restart: ${shutdown}`,
    ]);
    assert.deepEqual(stepsOf({ declared: { ...declared, power: "Stopped" } }), [
      `Stop: ${shutdown}`,
    ]);
  });

  it("leaves alone what was changed by hand where that is declared, but for a restart", () => {
    const warned = { ...larger, driftPolicy: "Warn", wantsRestart: true } as const;
    assert.deepEqual(stepsOf({ declared: warned, ...costs("Live") }), [`Restart: ${shutdown}`]);
  });

  it("shows no values of what the guest is told at its first boot", () => {
    const shape = { ...declared.shape, cloudInit: { user: "me" } } as Declared["shape"];
    const next = { do: "step", step: { name: "Configure", intent: "Change cloudInit." } } as never;
    const input = { declared: { ...declared, shape }, claim, seen: ours({}), nowMs: 0 };
    const [step] = plannedSteps(input, next);
    assert.match(`${step?.intent}`, /^Change cloudInit[^ ]*\.$/);
  });

  it("calls all that is done to a VM which was never whole its creation", () => {
    const absent = { claim: reserved, seen: { at: "absent" } as const };
    assert.deepEqual(stepsOf(absent), ["Create: Make the machine 100 on node n1."]);
  });

  it("tells a deletion from a release, whatever is done first", () => {
    const deleting = { ...declared, isDeleting: true };
    const steps = stepsOf({ declared: deleting });
    assert.deepEqual(steps, ["Delete: Shut the VM down, then destroy it."]);
    const kept = { declared: { ...deleting, fate: "Retain" } as const, leftovers: [] };
    assert.deepEqual(stepsOf(kept), ["Release: Release the VM: it stays on the hypervisor."]);
  });
});
