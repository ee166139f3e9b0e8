import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { basisOf, stepOrWait, type Found, type Next, type PlanInput } from "./next.ts";
import { planVmMemoryFree } from "./plan-memory.ts";
import { listText } from "../../kernel/list-text.ts";

const startIntent = "Start the machine.";

/** The power that is declared, and the restarts that changes need and may have. */
export function planVmPower(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const { declared } = input;
  const { machine } = found;
  if (machine.power === "Unknown") return planVmUnknownPower(input, claim, machine);
  const wanted = declared.power;
  if (machine.power === "Stopped" || machine.power === "Suspended") {
    // What is in its memory is not thrown away: it goes on first, and is then shut down.
    return wanted === machine.power ? undefined : start(input, claim, machine);
  }
  if (wanted === "Stopped" || declared.wantsRestart) return planVmPowerOff(input, claim, machine);
  const restart = planVmRestart(input, claim, found);
  if (restart !== undefined) return restart;
  if (wanted === "Suspended") return suspend(input, claim, machine);
  return machine.power === "Paused" ? resume(input, claim, machine) : undefined;
}

/** A machine in the making was not asked for its power: it never ran, so it can be started. */
function planVmUnknownPower(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  if (!input.isPowerUnasked) return { do: "wait", kind: "Task", name: "the power state" };
  const isFirst = !claim.everExisted && input.declared.power !== "Stopped";
  return isFirst ? start(input, claim, machine) : { do: "look" };
}

/** Changes that wait for a restart or for the machine to be off, where that is allowed. */
function planVmRestart(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const { machine, later } = found;
  const { updatePolicy, shutdown } = input.declared;
  if (updatePolicy === "PowerOff" && later.length > 0) {
    return withFields(planVmPowerOff(input, claim, machine), later);
  }
  if (updatePolicy === "Live" || machine.pending.length === 0) return undefined;
  const isAsked = machine.power === "Running" && shutdown.graceSeconds > 0;
  if (!isAsked || input.isShutdownIgnored || !claim.everExisted) {
    return planVmPowerOff(input, claim, machine);
  }
  const { graceSeconds } = shutdown;
  const operation = { kind: "reboot", claim, at: basisOf(machine), graceSeconds } as const;
  const intent = `Restart the guest for: ${listText(machine.pending)}.`.slice(0, 1000);
  return stepOrWait(input, { name: "Reboot", operation, intent }, machine.lock);
}

/** A VM is not switched off for fields that somebody keeps changing back. */
function withFields(next: Next, fields: readonly string[]): Next {
  return next.do === "step" ? { ...next, step: { ...next.step, fields } } : next;
}

/** A machine that is suspended to disk goes on from where it was. */
export function planVmResume(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  return start(input, claim, machine);
}

/** What watches over a machine takes requests, and follows them some time later. */
function queued(machine: Machine, wanted: "Running" | "Stopped"): Next | undefined {
  if (machine.highAvailability?.requested !== wanted) return undefined;
  const { detail, remedy } = machine.highAvailability;
  if (remedy !== undefined) {
    const message = `High availability has given up on it (${detail}): ${wanted} was asked.`;
    return { do: "fail", failure: { category: "ConfigurationError", message, remedy } };
  }
  return { do: "wait", kind: "Task", name: `high availability (${detail}): ${wanted} was asked` };
}

function start(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const asked = machine.power === "Stopped" ? queued(machine, "Running") : undefined;
  if (asked !== undefined) return asked;
  const operation = { kind: "powerOn", claim, at: basisOf(machine) } as const;
  const intent = machine.power === "Suspended" ? "Resume the machine." : startIntent;
  // The first one belongs to the creation: nobody undid anything.
  const first = claim.everExisted ? {} : { fields: [] };
  return stepOrWait(input, { name: "Start", operation, intent, ...first }, machine.lock);
}

function resume(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const operation = { kind: "resume", claim, at: basisOf(machine) } as const;
  const intent = "Let the paused machine go on.";
  return stepOrWait(input, { name: "Resume", operation, intent }, machine.lock);
}

function suspend(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const operation = { kind: "suspend", claim, at: basisOf(machine) } as const;
  const intent = "Save the machine's memory to disk and stop it.";
  const next = stepOrWait(input, { name: "Suspend", operation, intent }, machine.lock);
  const isNext = next.do === "step" && next.step.name === "Suspend";
  return (isNext ? planVmMemoryFree(input, claim, machine) : undefined) ?? next;
}

/** Off: by asking the guest first, then by force if that is allowed. */
export function planVmPowerOff(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const asked = queued(machine, "Stopped");
  if (asked !== undefined) return asked;
  const { graceSeconds, force } = input.declared.shutdown;
  const at = basisOf(machine);
  const isAsking = machine.power === "Running" && graceSeconds > 0 && !input.isShutdownIgnored;
  if (isAsking && claim.everExisted) {
    const mode = "Graceful";
    const operation = { kind: "powerOff", claim, at, mode, graceSeconds } as const;
    const intent = `Ask the guest to shut down, within ${graceSeconds} s.`;
    return stepOrWait(input, { name: "Shutdown", operation, intent }, machine.lock);
  }
  if (!force && claim.everExisted) {
    return { do: "wait", kind: "Task", name: "the guest to shut down (shutdown.force is off)" };
  }
  const operation = { kind: "powerOff", claim, at, mode: "Forced" } as const;
  const intent = "Switch the machine off.";
  return stepOrWait(input, { name: "PowerOff", operation, intent }, machine.lock);
}
