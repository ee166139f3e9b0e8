import type { ClaimSpec, VirtualMachineStatus } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { changeClass, type Found, type Next, type PlanInput } from "./next.ts";
import { changeText, sizeChanges } from "./plan-changes.ts";
import { compare, isDriftLeftAlone } from "./plan-machine.ts";
import { planVmPower } from "./plan-power.ts";

/** One thing that a copy of the installation would do, as `status.plannedSteps` shows it. */
export type PlannedStep = NonNullable<VirtualMachineStatus["plannedSteps"]>[number];

type Step = (Next & { do: "step" })["step"];

const intentMax = 1024;
const powerSteps: ReadonlySet<string> = new Set([
  "Start",
  "Resume",
  "Suspend",
  "Shutdown",
  "PowerOff",
  "Reboot",
]);

/**
 * What would become of the VM if this copy acted: the next step of the plan, and the power that
 * follows from it. Only the next step is certain; an operator has to know that a VM will also be
 * restarted, although its configuration is changed first. Pure.
 */
export function plannedSteps(input: PlanInput, next: Next): PlannedStep[] {
  const { claim, declared, seen } = input;
  if (declared.isDeleting) return deletion(input, next);
  const isThere = claim?.everExisted === true && seen.at === "ours";
  return isThere ? changes(input, { claim, machine: seen.machine }, next) : creation(input, next);
}

function planned(effect: PlannedStep["effect"], intent: string): PlannedStep {
  return { effect, intent: intent.slice(0, intentMax) };
}

/** Nothing of the VM is left, so only the object goes. */
export const removal: PlannedStep = {
  effect: "Delete",
  intent: "Remove the object: it has no VM on the hypervisor.",
};

function deletion({ declared, seen }: PlanInput, next: Next): PlannedStep[] {
  if (next.do === "finish" && next.how !== "Release") return [removal];
  if (declared.fate === "Retain") {
    return [planned("Release", "Release the VM: it stays on the hypervisor.")];
  }
  const isOn = seen.at === "ours" && seen.machine.power === "Running";
  const intent = isOn ? "Shut the VM down, then destroy it." : intentOf(next);
  return [planned("Delete", intent)];
}

function creation({ claim }: PlanInput, next: Next): PlannedStep[] {
  if (next.do !== "step") return [planned("Create", intentOf(next))];
  const { name, intent } = next.step;
  if (name === "Adopt") return [planned("Adopt", intent)];
  // One that existed is created again, or something of it is repaired.
  const isNew = claim?.everExisted !== true || name === "Create" || name === "Clone";
  return [planned(isNew ? "Create" : "Change", intent)];
}

function intentOf(next: Next): string {
  switch (next.do) {
    case "step":
      return next.step.intent;
    case "moveOn":
      return "Create the VM under another id.";
    case "keep":
      return "Put disks that stay into a disk-holder VM.";
    case "dropKeeper":
      return "Give up a disk-holder VM that is not needed any more.";
    default:
      return "Finish what was begun.";
  }
}

interface Standing {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

function changes(input: PlanInput, { claim, machine }: Standing, next: Next): PlannedStep[] {
  const found = compare(input, claim, machine);
  const step = next.do === "step" && powerSteps.has(next.step.name) ? next.step : undefined;
  const power = step ?? powerAfter(input, claim, found);
  const steps = power === undefined ? [] : [planned(powerEffect(power, input), power.intent)];
  const isOff = steps.some(({ effect }) => effect === "Stop" || effect === "Restart");
  const fields = isDriftLeftAlone(input, claim) ? [] : fieldTexts(input, found, isOff);
  const told = fields.length === 0 ? "" : `Change ${listText(fields)}.`;
  const text = step === undefined ? withFields(next, told) : told;
  return text === "" ? steps : [planned("Change", text), ...steps];
}

/** The fields say more than the step that configures them; of any other step both are said. */
function withFields(next: Next, fields: string): string {
  const isConfigured = next.do === "step" && next.step.name === "Configure" && fields !== "";
  return isConfigured ? fields : `${intentOf(next)} ${fields}`.trim();
}

/** The change of power that is planned once the VM is configured as declared. */
function powerAfter(input: PlanInput, claim: ClaimSpec, found: Found): Step | undefined {
  const { machine, differences } = found;
  if (isDriftLeftAlone(input, claim) && !input.declared.wantsRestart) return undefined;
  // What a running VM takes over only at a restart is pending from then on.
  const restarts = differences.filter(({ path }) => changeClass(input, path, machine) === "Reboot");
  const isOn = machine.power === "Running" || machine.power === "Paused";
  const pending = [...machine.pending, ...(isOn ? restarts.map(({ path }) => path) : [])];
  const next = planVmPower(input, claim, { ...found, machine: { ...machine, pending } });
  const isPower = next?.do === "step" && powerSteps.has(next.step.name);
  return isPower ? next.step : undefined;
}

function powerEffect({ name }: Step, { declared }: PlanInput): PlannedStep["effect"] {
  const staysOff = declared.power === "Stopped";
  switch (name) {
    case "Start":
    case "Resume":
      // What is suspended is resumed before it is shut down.
      return staysOff ? "Stop" : "Start";
    case "Suspend":
      return "Stop";
    case "Reboot":
      return "Restart";
    default:
      return staysOff ? "Stop" : "Restart";
  }
}

/** The fields that would be changed, without those that wait until the VM is off. */
function fieldTexts({ declared }: PlanInput, found: Found, isOff: boolean): string[] {
  const { machine, differences, later } = found;
  const shapes = differences
    .filter(({ path }) => isOff || !later.includes(path))
    // A disk that is new has a step of its own.
    .filter(({ path }) => !/^disks\[[^\]]*\]$/.test(path))
    .map(({ path, seen, wanted }) => {
      // User-data may hold a secret.
      if (path.startsWith("cloudInit")) return path;
      return `${path} from ${changeText(seen)} to ${changeText(wanted)}`;
    });
  const sizes = [...sizeChanges(declared, machine)];
  return [...shapes, ...sizes.map(({ field, from, to }) => `${field} from ${from} to ${to}`)];
}
