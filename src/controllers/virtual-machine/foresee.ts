import type { Failure } from "../../hypervisor/index.ts";
import { combined } from "../failures/index.ts";
import { heldStep, keyOf } from "../operations/index.ts";
import { additionFindings } from "./additions.ts";
import type { Declaring } from "./declare.ts";
import { reportedFlap } from "./flapping.ts";
import { findMadeElsewhere, type MadeElsewhere } from "./made-elsewhere.ts";
import type { Next, PlanInput } from "./next.ts";
import { plannedSteps, removal, type PlannedStep } from "./planned-steps.ts";
import { creationFindings } from "./reserve.ts";
import type { Step } from "./steps.ts";
import { isDeleting, type ConnectedTurn } from "./turn.ts";

const textMax = 1024;

/**
 * What this copy would do to a VM that it only observes, and what would keep it from that. It reads
 * and changes nothing: `berth takeover` shows it before an operator lets this copy act.
 */
export async function foreseeVm(
  turn: ConnectedTurn,
  input: PlanInput,
  { next, declaring }: { readonly next: Next; readonly declaring: Declaring },
): Promise<PlannedStep[]> {
  const { claim, seen = input.seen } = turn;
  const steps = plannedSteps({ ...input, claim: claim?.spec, seen }, next);
  if (next.do !== "step") return steps;
  return blocked(steps, await obstacleOf(turn, next.step, declaring));
}

/** The same for an object that has no VM yet. */
export async function foreseeCreation(
  turn: ConnectedTurn,
  { desired, declared }: Declaring,
): Promise<PlannedStep[]> {
  const whole = { ...desired, shape: declared.shape };
  const made = await findMadeElsewhere(turn, whole);
  if (made.is === "vm" || made.is === "released") return takeover(turn, made, declared.fate);
  if (isDeleting(turn.vm)) return [removal];
  const { externalId = "a free id" } = turn.vm.spec;
  const isAdopted = turn.vm.spec.adopt !== undefined;
  const step: PlannedStep = isAdopted
    ? { effect: "Adopt", intent: `Adopt the VM ${externalId}, or create it if that is declared.` }
    : { effect: "Create", intent: `Create the VM under ${externalId} on node ${declared.node}.` };
  return blocked([step], await creationObstacle(turn, { made, desired: whole, declared }));
}

function takeover(
  turn: ConnectedTurn,
  { reservation: { externalId, node } }: Extract<MadeElsewhere, { is: "vm" | "released" }>,
  fate: "Destroy" | "Retain",
): PlannedStep[] {
  const which = `the VM ${externalId} on ${node}, which another copy created for it`;
  if (!isDeleting(turn.vm)) {
    return [{ effect: "Adopt", intent: `Take over ${which}; then it becomes as declared here.` }];
  }
  return fate === "Destroy"
    ? [{ effect: "Delete", intent: `Destroy ${which}.` }]
    : [{ effect: "Release", intent: `Release ${which}.` }];
}

interface Creating extends Declaring {
  readonly made: MadeElsewhere;
}

async function creationObstacle(
  turn: ConnectedTurn,
  { made, desired, declared }: Creating,
): Promise<string | undefined> {
  if (made.is === "failed") return textOf(made.failure);
  if (made.is === "locked") return `LockError: ${made.lock.detail}`;
  // Whether a VM can be adopted is decided by its own rules: it is not created.
  if (turn.vm.spec.adopt !== undefined) return undefined;
  if (made.is === "lost") return textOf(made.failure);
  const findings = await creationFindings(turn, desired, declared.node);
  return findings.length === 0 ? undefined : textOf(combined(findings));
}

/** Why the step would not be sent: refused, failed too often, or undone by somebody else. */
async function obstacleOf(
  turn: ConnectedTurn,
  { name: step, operation }: Step,
  { declared }: Declaring,
): Promise<string | undefined> {
  const { vm, deps } = turn;
  const findings = await additionFindings(turn, declared);
  if (findings.length > 0) return textOf(combined(findings));
  const held = heldStep(vm, { step, tried: keyOf(operation).key }, deps.clock.nowMs());
  if (held?.isStalled === true) return textOf(held.failed);
  if (reportedFlap(vm) === undefined) return undefined;
  return "ConflictingController: somebody else keeps changing it back.";
}

function textOf({ category, message }: Pick<Failure, "category" | "message">): string {
  return `${category}: ${message}`.slice(0, textMax);
}

function blocked(steps: readonly PlannedStep[], blockedBy: string | undefined): PlannedStep[] {
  return steps.map((step) => (blockedBy === undefined ? step : { ...step, blockedBy }));
}
