import { createHash } from "node:crypto";
import type { VirtualMachineSpec, VirtualMachineStatus } from "../../api/index.ts";
import type { Change, Difference, Machine } from "../../hypervisor/index.ts";
import type { Desired } from "./desired.ts";
import { sizeText } from "./quantities.ts";

/** What stands between a declaration and a machine, as `status.plan` shows it. */
export type Plan = NonNullable<VirtualMachineStatus["plan"]>;
export type Planned = Plan["changes"][number];

type ChangeOf = (path: string, machine: Machine) => Change;

const changesMax = 32;
const textMax = 256;

/** The plan of these changes to this machine. Its hash is another for any other. */
export function planOfChanges(
  { externalId, identity }: Pick<Machine, "externalId" | "identity">,
  all: readonly Planned[],
): Plan {
  const changes = all.slice(0, changesMax);
  const named = JSON.stringify([externalId, identity, all]);
  const hash = createHash("sha256").update(named).digest("hex").slice(0, 16);
  return { hash, changes };
}

export function fieldChange(
  { path, wanted, seen }: Difference,
  machine: Machine,
  changeOf: ChangeOf,
): Planned {
  const { class: cost, detail } = changeOf(path, machine);
  const effect = cost === "Impossible" ? "Refused" : cost;
  const texts = { from: changeText(seen), to: changeText(wanted) };
  return { field: `spec.${path}`.slice(0, textMax), ...texts, effect, note: detail.slice(0, 512) };
}

export function* sizeChanges(
  { disks }: Pick<Desired, "disks">,
  machine: Machine,
): Iterable<Planned> {
  for (const { name, sizeBytes } of disks) {
    const seen = machine.disks.find((disk) => disk.name === name);
    if (seen === undefined || sizeBytes === undefined || seen.sizeBytes === sizeBytes) continue;
    const effect = sizeBytes < seen.sizeBytes ? "Refused" : "Live";
    const texts = { from: sizeText(seen.sizeBytes), to: sizeText(sizeBytes) };
    yield { field: `spec.disks[${name}].size`, ...texts, effect };
  }
}

/** Nobody is cut off when a machine is set going that does not run. */
const goingNotes: Partial<Record<Machine["power"], string>> = {
  Stopped: "The machine is started.",
  Suspended: "The machine is resumed.",
  Paused: "The machine goes on.",
};

export function powerChanges(
  { powerState }: Pick<VirtualMachineSpec, "powerState">,
  { power }: Pick<Machine, "power">,
): Planned[] {
  if (power === powerState) return [];
  const change = { field: "spec.powerState", from: power, to: powerState } as const;
  const note = powerState === "Running" ? goingNotes[power] : undefined;
  return [
    note === undefined ? { ...change, effect: "PowerOff" } : { ...change, effect: "Live", note },
  ];
}

export function changeText(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, textMax);
}
