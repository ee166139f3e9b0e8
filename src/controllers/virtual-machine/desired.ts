import type { VirtualMachine } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, CpuShape, MemoryShape, NewDisk, Shape } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";
import type { Declaration } from "./declaration.ts";
import { cloudInitShape } from "./desired-cloud-init.ts";
import { cdromShapes, deviceShape, firmwareShape, someOf } from "./desired-devices.ts";
import { networkShape } from "./desired-network.ts";
import { refusedFields } from "./desired-refusals.ts";
import { optionsOf } from "./plan-disks.ts";
import { bytesOf, numberOf } from "./quantities.ts";
import { needsSeed, type Seed } from "./seed.ts";

/** The machine as it should be, in the words of the contract. */
export interface Desired {
  readonly shape: Shape;
  readonly disks: readonly NewDisk[];
  readonly pool?: string;
  readonly seed?: Seed | undefined;
  /** What Secrets say, by the field that refers to them, where they were read. */
  readonly origins?: Readonly<Record<string, string>>;
}

/** Class, VM and image merged into one. Pure; what cannot be had is named all at once. */
export function desireMachine(declaration: Declaration): Answer<Desired> {
  const { vm } = declaration;
  const refused = refusedFields(vm.spec);
  if (refused.length > 0) {
    return failed({
      category: "APINotSupported",
      message: `This version of Berth cannot do this yet: ${refused.join("; ")}.`,
      remedy: "Remove these fields, or wait for a version that has them.",
    });
  }
  const disks = desiredDisks(declaration);
  if (!disks.ok) return disks;
  const { pool } = vm.spec.placement ?? {};
  const shape = desiredShape(declaration, disks.value);
  const { seed } = declaration;
  return answered({ shape, disks: disks.value, seed, ...(pool === undefined ? {} : { pool }) });
}

function desiredShape(declaration: Declaration, newDisks: readonly NewDisk[]): Shape {
  const { vm, vmClass, passwordHash } = declaration;
  const { spec, metadata } = vm;
  const { startOnBoot, startup, deletionProtection, description: notes, tags } = spec;
  const beside = storageOfFirst(vm, newDisks);
  return defined<Shape>({
    name: spec.machineName ?? metadata.name,
    notes,
    tags,
    cpu: cpuShape({ ...vmClass?.spec.cpu, ...spec.cpu }),
    memory: memoryShape({ ...vmClass?.spec.memory, ...spec.memory }),
    machineType: spec.machineType ?? vmClass?.spec.machineType,
    firmware: firmwareShape(spec, vmClass, beside),
    disks: someOf(newDisks.map(optionsOf)),
    cdroms: cdromShapes(spec.cdroms, declaration.discs),
    networks: someOf((spec.networks ?? []).map((card) => networkShape(card, declaration))),
    bootOrder: bootOrderOf(declaration),
    ...deviceShape(spec, declaration.guestOs),
    highAvailability: spec.highAvailability,
    startOnBoot,
    startup,
    deletionProtection,
    cloudInit: cloudInitShape(needsSeed(vm) ? undefined : spec.cloudInit, {
      passwordHash,
      // Where the drive lies is chosen once, when it is made.
      storage: declaration.isNew ? beside : undefined,
      isNew: declaration.isNew,
    }),
  });
}

/** Where the disk lies that the machine starts from. */
function storageOfFirst(vm: VirtualMachine, disks: readonly NewDisk[]): string | undefined {
  const [first] = firstBoot(vm) ?? [];
  return disks.find(({ name }) => name === first)?.storage ?? disks[0]?.storage;
}

function bootOrderOf({ vm, isNew, firstDisk }: Declaration): string[] | undefined {
  const { bootOrder: written, source, disks = [] } = vm.spec;
  if (written !== undefined) {
    return written.map(({ disk, cdrom, network }) => disk ?? cdrom ?? network ?? "");
  }
  if (isNew || filledDisk(source) !== undefined) return firstBoot(vm);
  // Which is the first of the list counts once: to write it in another order is no change.
  const isThere = disks.some(({ name, state }) => name === firstDisk && state !== "Absent");
  return isThere && firstDisk !== undefined ? [firstDisk] : undefined;
}

/** The order in which a machine boots that does not say: the disk that its source fills. */
function firstBoot({ spec }: VirtualMachine): string[] | undefined {
  const first = spec.disks?.find(({ state }) => state !== "Absent")?.name;
  const filled = filledDisk(spec.source) ?? first;
  return filled === undefined ? undefined : [filled];
}

function filledDisk(source: VirtualMachine["spec"]["source"]): string | undefined {
  return (source?.image ?? source?.clone ?? source?.importedDisk)?.disk;
}

function desiredDisks({ vm, hypervisor, fills, storageDefault }: Declaration): Answer<NewDisk[]> {
  const disks: NewDisk[] = [];
  const declared = (vm.spec.disks ?? []).filter(({ state }) => state !== "Absent");
  for (const disk of declared) {
    const storage = disk.storage ?? hypervisor.spec.defaults?.storage ?? storageDefault;
    if (storage === undefined) return failed(noStorage(disk.name, hypervisor.metadata.name ?? ""));
    const { name, bus, cache, discard, ioThread, asyncIo, ssd, readOnly, backup } = disk;
    const { replicate, serial, limits, format } = disk;
    const options = { bus, cache, discard, ioThread, asyncIo, ssd, readOnly, backup, replicate };
    disks.push(
      defined<NewDisk>({
        name,
        ...options,
        serial,
        limits,
        format,
        storage,
        sizeBytes: disk.size === undefined ? undefined : bytesOf(disk.size),
        fill: fills.get(name) ?? { from: "blank" },
      }),
    );
  }
  return answered(disks);
}

function noStorage(disk: string, hypervisor: string): Parameters<typeof failed>[0] {
  return {
    category: "ConfigurationError",
    message: `The disk ${disk} names no storage, and the Hypervisor ${hypervisor} has no default.`,
    remedy: `Set spec.disks[].storage, or spec.defaults.storage of the Hypervisor ${hypervisor}.`,
  };
}

type Cpu = NonNullable<VirtualMachine["spec"]["cpu"]>;
type Memory = NonNullable<VirtualMachine["spec"]["memory"]>;

function cpuShape(cpu: Cpu): CpuShape | undefined {
  const { cores, sockets, model, features, limit, weight, numa, hostCpus } = cpu;
  const shape = defined<CpuShape>({
    cores,
    sockets: sockets ?? (cores === undefined ? undefined : 1),
    model,
    features: features?.map(({ name, state }) => ({ name, isEnabled: state === "Enabled" })),
    limitMillicores: limit === undefined ? undefined : Math.round(numberOf(limit) * 1000),
    weight,
    numa,
    hostCpus,
  });
  return Object.keys(shape).length > 0 ? shape : undefined;
}

function memoryShape({ size, minimum, ballooning, weight }: Memory): MemoryShape | undefined {
  const shape = defined<MemoryShape>({
    sizeBytes: size === undefined ? undefined : bytesOf(size),
    minimumBytes: minimum === undefined ? undefined : bytesOf(minimum),
    ballooning,
    weight,
  });
  return Object.keys(shape).length > 0 ? shape : undefined;
}
