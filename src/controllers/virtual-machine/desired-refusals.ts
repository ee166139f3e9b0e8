import type { VirtualMachineSpec } from "../../api/index.ts";

type Asks = (spec: VirtualMachineSpec) => boolean | undefined;

/**
 * Fields that are part of the API and that nothing here can do yet. They are refused by name: to
 * leave them out silently would be to make another machine than was declared. What a hypervisor
 * cannot do its driver refuses itself.
 */
const refusals: readonly (readonly [field: string, asks: Asks])[] = [
  ["spec.memory.hugePages", ({ memory }) => memory?.hugePages !== undefined],
  ["spec.highAvailability", ({ highAvailability }) => highAvailability !== undefined],
  ["spec.placement.mode: Enforce", ({ placement }) => placement?.mode === "Enforce"],
  ["spec.placement.awayFrom", ({ placement }) => placement?.awayFrom !== undefined],
  ["spec.adopt", ({ adopt }) => adopt !== undefined],
  ["spec.source.clone.mode: Linked", ({ source }) => source?.clone?.mode === "Linked"],
  ["spec.source.clone.snapshot", ({ source }) => source?.clone?.snapshot !== undefined],
  ["spec.source.importedDisk.mode: Take", ({ source }) => source?.importedDisk?.mode === "Take"],
  ["spec.source.importedDisk.path", ({ source }) => source?.importedDisk?.path !== undefined],
  ["spec.cloudInit data that is inline or in a Secret", ({ cloudInit }) => hasContent(cloudInit)],
];

/** The fields of a spec that cannot be had yet. */
export function refusedFields(spec: VirtualMachineSpec): string[] {
  return refusals.filter(([, asks]) => asks(spec)).map(([field]) => field);
}

function hasContent(cloudInit: VirtualMachineSpec["cloudInit"]): boolean {
  const { userData, vendorData, metaData, networkData } = cloudInit ?? {};
  const parts = [userData, vendorData, metaData, networkData];
  return parts.some((part) => part !== undefined && part.file === undefined);
}
