import { vmConditions, vmReasons } from "../../api/index.ts";
import type { ClaimSpec, VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import type { GuestView, Machine } from "../../hypervisor/index.ts";
import type { ConditionState } from "../../runtime/index.ts";

/** Whether it is powered on. */
export function running(
  machine: Machine | undefined,
  claim: ClaimSpec | undefined,
): ConditionState {
  const type = vmConditions.Running;
  const isComing = isInMaking(machine, claim);
  const without = isComing ? "It has not been started yet." : "The VM does not exist.";
  switch (isComing ? undefined : machine?.power) {
    case "Running":
      return { type, status: "True", reason: vmReasons.Succeeded, message: "It is powered on." };
    case "Unknown":
      return { type, status: "Unknown", reason: vmReasons.Unreachable, message: "Not seen yet." };
    case "Paused":
    case "Suspended":
      return { type, status: "False", reason: vmReasons.Suspended, message: "It is suspended." };
    case "Stopped":
      return { type, status: "False", reason: vmReasons.Stopped, message: "It is powered off." };
    case undefined:
      return { type, status: "False", reason: vmReasons.Stopped, message: without };
  }
}

function isTrue(status: VirtualMachineStatus | undefined, type: string): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some((condition) => condition.type === type && condition.status === "True");
}

/** Whether the agent in the guest answers; undefined: nobody asked, and it stays as it was. */
export function agentReady(
  { spec, status }: VirtualMachine,
  machine: Machine | undefined,
  guest: GuestView | undefined,
): ConditionState | undefined {
  const type = vmConditions.AgentReady;
  if (spec.guestAgent?.enabled === false) {
    const message = "The machine has no channel for an agent.";
    return { type, status: "False", reason: vmReasons.AgentDisabled, message };
  }
  if (guest?.agent === "Answered") {
    return { type, status: "True", reason: vmReasons.Succeeded, message: "The agent answers." };
  }
  const isUnasked = guest === undefined && machine?.power === "Running";
  if (isUnasked && isTrue(status, type)) return undefined;
  const message = "No agent has answered yet. Nothing waits for it.";
  return { type, status: "False", reason: vmReasons.NoAgent, message };
}

/** Nobody asked for the power of a machine that never ran. */
function isInMaking(machine: Machine | undefined, claim: ClaimSpec | undefined): boolean {
  return machine?.power === "Unknown" && claim?.everExisted !== true;
}
