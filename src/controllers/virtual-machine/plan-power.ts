import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { stepOrWait, type Next, type PlanInput } from "./next.ts";

/** Off: by asking the guest first, then by force if that is allowed. */
export function planVmPowerOff(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const { graceSeconds, force } = input.declared.shutdown;
  const at = { node: machine.node, version: machine.version };
  const isAsking = machine.power === "Running" && graceSeconds > 0 && !input.isShutdownIgnored;
  if (isAsking && claim.everStood) {
    const mode = "Graceful";
    const operation = { kind: "powerOff", claim, at, mode, graceSeconds } as const;
    const intent = `Ask the guest to shut down, within ${graceSeconds} s.`;
    return stepOrWait(input, { name: "Shutdown", operation, intent }, machine.lock);
  }
  if (!force && claim.everStood) {
    return { do: "wait", kind: "Task", name: "the guest to shut down (shutdown.force is off)" };
  }
  const operation = { kind: "powerOff", claim, at, mode: "Forced" } as const;
  const intent = "Switch the machine off.";
  return stepOrWait(input, { name: "PowerOff", operation, intent }, machine.lock);
}
