import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { sharedConditionMeanings, sharedReasonMeanings } from "../reasons.ts";
import { object, optional } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";
import { classCpu, classMemory, firmware, machineType } from "../virtual-machine/cpu-memory.ts";

const spec = object("What machines of this class get, unless they say otherwise.", {
  cpu: classCpu,
  memory: classMemory,
  firmware: optional(firmware),
  machineType: optional(machineType),
});

const status = object("What is known about the class.", {
  observedGeneration: optional(observedGeneration),
  conditions: optional(conditions),
});

/** Named sizes. */
export const vmClassKind = defineKind({
  kind: "VMClass",
  plural: "vmclasses",
  shortNames: ["vmc"],
  namespaced: true,
  served: true,
  description:
    "A VMClass names a size of machine: cpu, memory, firmware and machine type. A VirtualMachine takes them by classRef, and may say single fields differently.",
  spec,
  status,
  columns: [
    { ...column("Cores", ".spec.cpu.cores", "Cores of each socket."), type: "integer" },
    { ...column("Sockets", ".spec.cpu.sockets", "Sockets."), type: "integer", priority: 1 },
    column("Memory", ".spec.memory.size", "The size of the memory."),
    column("Firmware", ".spec.firmware.type", "The kind of firmware."),
    conditionColumn("Ready", "Ready"),
    ageColumn,
  ],
  conditions: { types: sharedConditionMeanings, reasons: sharedReasonMeanings },
});

export type VMClass = ObjectOf<typeof vmClassKind>;
export type WrittenVMClass = WrittenObjectOf<typeof vmClassKind>;
export type VMClassSpec = ReadOf<typeof spec>;
export type VMClassStatus = ReadOf<typeof status>;
