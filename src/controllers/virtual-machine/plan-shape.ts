import type { ClaimSpec } from "../../api/index.ts";
import type { Difference, Machine, PartName, Shape, Stamp } from "../../hypervisor/index.ts";
import { basisOf, stepOrWait, type Found, type Next, type PlanInput } from "./next.ts";
import { seedShape } from "./plan-seed.ts";
import type { Step } from "./steps.ts";

/** Lists of a shape whose entries have places in the mark, but for disks. */
const parts = { networks: "network", cdroms: "cdrom", pci: "pci", usb: "usb" } as const;
type PartField = keyof typeof parts;
// cast: the keys of an object that is written out above.
const partFields = Object.keys(parts) as PartField[];

/** Everything but disks: what is no longer declared goes, new names get places, values change. */
export function planVmShape(input: PlanInput, claim: ClaimSpec, found: Found): Next | undefined {
  const { machine, differences, later } = found;
  // The shape is that of the next start: what waits for it as it should be does not differ.
  const news = differences.filter(({ path }) => {
    // It has an operation of its own.
    return !path.startsWith("highAvailability") && !later.includes(path);
  });
  const step =
    removeStep(input, claim, machine) ??
    placeStep(claim, machine, news) ??
    insertStep(input, claim, machine) ??
    (news.length === 0 ? undefined : changeStep(input, claim, { machine, news }));
  return step && stepOrWait(input, step, machine.lock);
}

/** A part that a spec once named and this one does not. What nobody named is a person's. */
function removeStep({ declared }: PlanInput, claim: ClaimSpec, machine: Machine): Step | undefined {
  for (const field of partFields) {
    const declaredNames = new Set(declared.shape[field]?.map(({ name }) => name));
    const known = machine.mark?.[field] ?? {};
    const gone = (machine.shape[field] ?? []).find(({ name }) => {
      return name in known && !declaredNames.has(name);
    });
    if (gone === undefined || machine.pending.includes(`${field}[${gone.name}]`)) continue;
    const part: PartName = { of: parts[field], name: gone.name };
    const operation = { kind: "detach", claim, at: basisOf(machine), part } as const;
    return { name: "Detach", operation, intent: `Take off the ${part.of} ${part.name}.` };
  }
  return undefined;
}

/** New names get their places before anything is made under them. */
function placeStep(
  claim: ClaimSpec,
  machine: Machine,
  news: readonly Difference[],
): Step | undefined {
  const placed = partFields.map((field) => [field, newNames(field, machine, news)] as const);
  const names = placed.flatMap(([, found]) => found);
  if (names.length === 0) return undefined;
  const lists = Object.fromEntries(
    placed.map(([field, found]) => [field, found.map((name) => ({ name }))]),
  );
  const operation: Stamp = {
    kind: "stamp",
    claim,
    at: basisOf(machine),
    disks: [],
    networks: lists["networks"] ?? [],
    cdroms: busesOf(lists["cdroms"] ?? [], news),
    pci: lists["pci"] ?? [],
    usb: lists["usb"] ?? [],
  };
  return { name: "WriteMarker", operation, intent: `Choose places for ${names.join(", ")}.` };
}

function newNames(field: PartField, machine: Machine, news: readonly Difference[]): string[] {
  const known = machine.mark?.[field] ?? {};
  return news.flatMap(({ path }) => {
    const name = new RegExp(`^${field}\\[([^\\]]*)\\]$`).exec(path)?.[1];
    return name === undefined || name in known ? [] : [name];
  });
}

/** A drive has to get its place on the bus that it should be on. */
function busesOf(
  drives: readonly { readonly name: string }[],
  news: readonly Difference[],
): NonNullable<Stamp["cdroms"]> {
  return drives.map(({ name }) => {
    const wanted = news.find(({ path }) => path === `cdroms[${name}]`)?.wanted;
    // cast: the wanted value of a difference of a drive is the drive.
    const { bus } = (wanted ?? {}) as NonNullable<Shape["cdroms"]>[number];
    return bus === undefined ? { name } : { name, bus };
  });
}

/** A disc of ours for a machine that has no disk to be made together with. */
function insertStep(input: PlanInput, claim: ClaimSpec, machine: Machine): Step | undefined {
  const shape = seedShape(input, claim, machine);
  if (shape.cloudInit === undefined) return undefined;
  const operation = { kind: "configure", claim, at: basisOf(machine), shape } as const;
  return { name: "Configure", operation, intent: "Insert the data of the first boot." };
}

function changeStep(
  { declared }: PlanInput,
  claim: ClaimSpec,
  { machine, news }: { readonly machine: Machine; readonly news: readonly Difference[] },
): Step {
  const shape = changedPart(declared.shape, news);
  const operation = { kind: "configure", claim, at: basisOf(machine), shape } as const;
  const fields = news.map(({ path }) => path);
  const intent = `Change ${fields.join(", ")}.`.slice(0, 1000);
  return { name: "Configure", operation, intent, fields };
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
  const changed = Object.entries(shape).flatMap(([field, value]): [string, unknown][] => {
    if (!isTouched(field)) return [];
    if (field !== "disks" && !(field in parts)) return [[field, value]];
    // cast: these fields of a Shape are lists of what has a name.
    const items = value as readonly { readonly name: string }[];
    return [[field, items.filter(({ name }) => isTouched(`${field}[${name}]`))]];
  });
  return Object.fromEntries(changed);
}
