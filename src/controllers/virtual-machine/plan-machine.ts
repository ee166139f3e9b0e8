import type { ClaimSpec } from "../../api/index.ts";
import { shapeDifferences } from "../../hypervisor/index.ts";
import type {
  Basis,
  Difference,
  Failure,
  Machine,
  NewDisk,
  Shape,
} from "../../hypervisor/index.ts";
import { claimChange } from "./plan-claim.ts";
import { planVmPowerOff } from "./plan-power.ts";
import { stepOrWait, type Next, type PlanInput } from "./next.ts";
import type { Step } from "./steps.ts";

/** A machine that is ours and should stand: disks, sizes, shape, power, in this order. */
export function planVmMachine(input: PlanInput, claim: ClaimSpec, machine: Machine): Next {
  const change = claimChange(input.declared, claim, machine);
  if (change !== undefined) return { do: "record", change };
  const differences = shapeDifferences(input.declared.shape, machine.shape);
  const found = { machine, differences };
  const refusal = refusalOf(input, claim, found);
  if (refusal !== undefined) return refusal;
  const isLeftAlone = isDriftLeftAlone(input, claim);
  const next = isLeftAlone ? undefined : planVmForm(input, claim, found);
  const mayPower = !isLeftAlone || input.declared.wantsRestart;
  const power = mayPower ? planVmPower(input, claim, machine) : undefined;
  if (next !== undefined) return next;
  if (power !== undefined) return power;
  if (!claim.everStood) return { do: "record", change: { everStood: true } };
  return { do: "rest", drift: isLeftAlone ? differences : [], pending: machine.pending };
}

/** What differs was not edited, so somebody changed it by hand; and that is not to be corrected. */
function isDriftLeftAlone({ declared }: PlanInput, claim: ClaimSpec): boolean {
  return claim.everStood && !declared.isEdited && declared.driftPolicy !== "Correct";
}

function planVmForm(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  return planVmDisks(input, claim, found.machine) ?? planVmShape(input, claim, found);
}

interface Found {
  readonly machine: Machine;
  readonly differences: readonly Difference[];
}

/** What cannot be changed in place is refused whole, before anything of it is applied. */
function refusalOf(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const fields = [...shrinkingDisks(input.declared.disks, found.machine)];
  // The first boot's data counts only until the machine stood.
  if (claim.everStood && found.differences.some(({ path }) => path.startsWith("cloudInit"))) {
    fields.push("spec.cloudInit");
  }
  const [lost] = claim.everStood ? lostDisks(input.declared.disks, claim, found.machine) : [];
  if (lost !== undefined) return { do: "fail", failure: lostDisk(lost) };
  if (fields.length === 0) return undefined;
  if (!claim.everStood) return { do: "fail", failure: tooSmall(fields) };
  return {
    do: "fail",
    failure: {
      category: "ReplacementRequired",
      message: `This cannot be changed in place: ${fields.join(", ")}. Nothing was applied.`,
      remedy: "Put the fields back, or make a new VirtualMachine.",
    },
  };
}

/** A new disk is as large as what fills it, and that is known only when it was filled. */
function tooSmall(fields: readonly string[]): Failure {
  return {
    category: "ConfigurationError",
    message: `A disk cannot be smaller than what fills it: ${fields.join(", ")}.`,
    remedy: "Declare it at least so large. Berth goes on by itself.",
  };
}

function* shrinkingDisks(disks: readonly NewDisk[], machine: Machine): Iterable<string> {
  for (const { name, sizeBytes } of disks) {
    const seen = machine.disks.find((disk) => disk.name === name);
    if (seen && sizeBytes !== undefined && sizeBytes < seen.sizeBytes) {
      yield `spec.disks[${name}].size (it has ${seen.sizeBytes} bytes)`;
    }
  }
}

/** Disks that the Claim knows and the machine lacks: an empty one in their place would hide it. */
function lostDisks(disks: readonly NewDisk[], claim: ClaimSpec, machine: Machine): string[] {
  const known = new Set(claim.volumes?.map(({ disk }) => disk));
  return disks
    .map(({ name }) => name)
    .filter((name) => known.has(name) && !machine.disks.some((disk) => disk.name === name));
}

function lostDisk(name: string): Failure {
  return {
    category: "Missing",
    message: `The disk ${name} was the machine's and is no longer attached to it.`,
    remedy: "Attach the disk again on the hypervisor, or remove its entry from spec.disks.",
  };
}

function planVmDisks(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const at = basisOf(machine);
  const absent = input.declared.disks.filter(({ name }) => !seenDisk(machine, name));
  const [first] = absent;
  if (first !== undefined) {
    const unmarked = absent.filter(({ name }) => machine.mark?.disks[name] === undefined);
    const step =
      unmarked.length > 0
        ? stampStep(claim, at, unmarked)
        : addDiskStep(input, { claim, machine, disk: first });
    return stepOrWait(input, step, machine.lock);
  }
  for (const { name: disk, sizeBytes = 0 } of input.declared.disks) {
    if ((seenDisk(machine, disk)?.sizeBytes ?? 0) >= sizeBytes) continue;
    const operation = { kind: "grow", claim, at, disk, sizeBytes } as const;
    const intent = `Grow the disk ${disk} to ${sizeBytes} bytes.`;
    return stepOrWait(input, { name: "Grow", operation, intent }, machine.lock);
  }
  return undefined;
}

function seenDisk(machine: Machine, name: string): Machine["disks"][number] | undefined {
  return machine.disks.find((disk) => disk.name === name);
}

function stampStep(claim: ClaimSpec, at: Basis, disks: readonly NewDisk[]): Step {
  const named = disks.map(({ name, bus }) => (bus === undefined ? { name } : { name, bus }));
  const operation = { kind: "stamp", claim, at, disks: named, networks: [] } as const;
  const names = disks.map(({ name }) => name).join(", ");
  return { name: "Stamp", operation, intent: `Choose places for the disks ${names}.` };
}

function addDiskStep(
  { declared }: PlanInput,
  { claim, machine, disk }: { claim: ClaimSpec; machine: Machine; disk: NewDisk },
): Step {
  const there = new Set([disk.name, ...machine.disks.map(({ name }) => name)]);
  const networks = new Set(declared.shape.networks?.map(({ name }) => name));
  const order = declared.shape.bootOrder?.filter((name) => there.has(name) || networks.has(name));
  const bootOrder = order !== undefined && order.length > 0 ? { bootOrder: order } : {};
  const at = basisOf(machine);
  const operation = { kind: "addDisk", claim, at, disk, ...bootOrder } as const;
  return { name: "AddDisk", operation, intent: `Make the disk ${disk.name} on ${disk.storage}.` };
}

function planVmShape(
  input: PlanInput,
  claim: ClaimSpec,
  { machine, differences }: Found,
): Next | undefined {
  // What waits for a restart has been said already; to say it again changes nothing.
  const news = differences.filter(
    ({ path }) => !machine.pending.some((field) => path.startsWith(field)),
  );
  if (news.length === 0) return undefined;
  const shape = changedPart(input.declared.shape, news);
  const operation = { kind: "configure", claim, at: basisOf(machine), shape } as const;
  const fields = news.map(({ path }) => path).join(", ");
  const intent = `Change ${fields}.`.slice(0, 1000);
  return stepOrWait(input, { name: "Configure", operation, intent }, machine.lock);
}

/** The fields that differ, and of lists the entries that do. */
function changedPart(shape: Shape, differences: readonly Difference[]): Shape {
  const paths = differences.map(({ path }) => path);
  const isTouched = (field: string): boolean => {
    return paths.some(
      (path) =>
        path === field || (/^[.[]/.test(path.slice(field.length)) && path.startsWith(field)),
    );
  };
  const touched = <T extends { name: string }>(field: string, items: readonly T[]): T[] => {
    return items.filter(({ name }) => isTouched(`${field}[${name}]`));
  };
  const { disks, networks, ...rest } = shape;
  const fields = Object.entries(rest).filter(([field]) => isTouched(field));
  return {
    // cast: fields of a Shape with their own values.
    ...(Object.fromEntries(fields) as Shape),
    ...(disks && isTouched("disks") ? { disks: touched("disks", disks) } : {}),
    ...(networks && isTouched("networks") ? { networks: touched("networks", networks) } : {}),
  };
}

function planVmPower(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const { declared } = input;
  const { power } = machine;
  if (power === "Unknown") return { do: "wait", kind: "Task", name: "the power state" };
  if (power === "Stopped" && declared.power === "Running") {
    const operation = { kind: "powerOn", claim, at: basisOf(machine) } as const;
    const intent = "Start the machine.";
    return stepOrWait(input, { name: "Start", operation, intent }, machine.lock);
  }
  if (power === "Stopped") return undefined;
  const mayRestart = declared.updatePolicy !== "Live" && machine.pending.length > 0;
  const isOff = declared.power === "Stopped" || declared.wantsRestart || mayRestart;
  if (isOff) return planVmPowerOff(input, claim, machine);
  if (power === "Running") return undefined;
  const operation = { kind: "powerOn", claim, at: basisOf(machine) } as const;
  return stepOrWait(
    input,
    { name: "Start", operation, intent: "Resume the machine." },
    machine.lock,
  );
}

function basisOf({ node, version }: Machine): Basis {
  return { node, version };
}
