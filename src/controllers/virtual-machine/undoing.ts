import type { Operation, PartName, Work } from "../../hypervisor/index.ts";
import type { Step, StepName } from "./steps.ts";

/** How somebody else can undo a step. */
export interface Undoing {
  readonly by: readonly Work[];
  /** `Maybe`: it can also be undone by a change that no task list shows. */
  readonly isListed: "Always" | "Maybe";
  /** The guest can undo it by itself: then the task list shows nobody. */
  readonly byGuest?: true;
}

/** Why nobody can undo a step, so that it is not counted. */
interface Never {
  readonly never: string;
}

const listed = { isListed: "Always" } as const;
const power = { isListed: "Always", byGuest: true } as const;
const settings = { by: ["Configure", "Restore"], isListed: "Maybe" } as const;
const unlisted = { by: [], isListed: "Maybe" } as const;
const ofHolder = { never: "it is part of one transfer of a disk, which ends" } as const;
const firstBoot = { never: "the file is removed after the first boot and not put back" } as const;
const ownLock = { never: "only a lock of a task of Berth that has ended is cleared" } as const;
const gone = { never: "what is destroyed does not come back under its marker" } as const;
const marker = { never: "a marker that somebody edits is an IdentityConflict" } as const;

/** Every step: a new one has to say what can undo it. */
const table: Readonly<Record<StepName, Undoing | Never>> = {
  Start: { by: ["Stop", "Suspend"], ...power },
  Resume: { by: ["Stop", "Suspend"], ...power },
  Shutdown: { by: ["Start", "Resume"], ...power },
  PowerOff: { by: ["Start", "Resume"], ...power },
  Suspend: { by: ["Start", "Resume"], ...power },
  Configure: settings,
  Attach: settings,
  Detach: settings,
  MoveDisk: { by: ["MoveDisk", "Migrate", "Restore"], ...listed },
  Grow: { by: ["Restore"], ...listed },
  Migrate: { by: ["Migrate"], ...listed },
  SetPool: unlisted,
  SetHighAvailability: unlisted,
  Create: { by: ["Destroy"], ...listed },
  Clone: { by: ["Destroy"], ...listed },
  AddDisk: { never: "a disk whose volume is gone is reported as missing, and not created again" },
  DestroyDisk: gone,
  Destroy: gone,
  RemoveVolume: gone,
  Reboot: { never: "it is for changes that are counted themselves" },
  WriteMarker: marker,
  Adopt: marker,
  Release: { never: "a released VM is not Berth's any more" },
  Unlock: ownLock,
  DestroyPlaceholder: ownLock,
  TransferDisk: ofHolder,
  ReturnDisk: ofHolder,
  CreateDiskHolder: ofHolder,
  WriteDiskHolderMarker: ofHolder,
  AdoptDiskHolder: ofHolder,
  MigrateDiskHolder: ofHolder,
  ReleaseDiskHolder: ofHolder,
  DestroyDiskHolder: ofHolder,
  UploadSeed: firstBoot,
  EjectSeed: firstBoot,
  RemoveSeed: firstBoot,
};

/** How a step is undone, by its name in a status; undefined: nobody can. */
export function undoingOf(step: string): Undoing | undefined {
  const found = Object.entries(table).find(([name]) => name === step)?.[1];
  return found === undefined || "never" in found ? undefined : found;
}

/** As much of a field as a status keeps. */
const fieldMax = 128;

/** What a step puts right, as fields of the spec. Empty: nobody can undo it. */
export function undoableFields({ name, operation, fields }: Step): readonly string[] {
  if (undoingOf(name) === undefined) return [];
  return fieldsOf(operation, fields).map((field) => field.slice(0, fieldMax));
}

function fieldsOf(operation: Operation, fields: Step["fields"]): readonly string[] {
  switch (operation.kind) {
    case "configure":
      return (fields ?? Object.keys(operation.shape)).map(specField);
    case "attach":
      return [`disks[${operation.disk.name}]`];
    case "detach":
      return [partField(operation.part)];
    case "moveDisk":
      return [`disks[${operation.disk}].storage`];
    case "grow":
      return [`disks[${operation.disk}].size`];
    case "migrate":
      return ["placement"];
    case "regroup":
      return ["placement.pool"];
    case "guard":
      return ["highAvailability"];
    case "powerOn":
      // The start that ends a creation corrects nothing.
      return fields ?? ["powerState"];
    case "create":
    case "clone":
      // Only where it existed before did somebody undo its creation.
      return fields ?? [];
    default:
      return ["powerState"];
  }
}

const lists = {
  disk: "disks",
  cdrom: "cdroms",
  network: "networks",
  pci: "pci",
  usb: "usb",
} as const satisfies Record<PartName["of"], string>;

function partField({ of, name }: PartName): string {
  return `${lists[of]}[${name}]`;
}

/** Paths of a shape have their units in their names; fields of the spec do not. */
export function specField(path: string): string {
  return path.replace(/(?:Bytes|Millicores)$/, "");
}
