import type { VirtualMachineSpec } from "../../api/index.ts";

type Asks = (spec: VirtualMachineSpec) => boolean | undefined;

/**
 * Fields that are part of the API and that the contract with drivers has no word for yet. They are
 * refused by name: to leave them out silently would be to make another machine than was declared.
 */
const refusals: readonly (readonly [field: string, asks: Asks])[] = [
  ["spec.firmware.type: UEFI", ({ firmware }) => firmware?.type === "UEFI"],
  ["spec.firmware.secureBoot", ({ firmware }) => firmware?.secureBoot],
  ["spec.firmware.tpm", ({ firmware }) => (firmware?.tpm ?? "None") !== "None"],
  ["spec.cdroms", ({ cdroms = [] }) => cdroms.length > 0],
  ["spec.devices.display", ({ devices }) => devices?.display !== undefined],
  ["spec.devices.pci", ({ devices }) => (devices?.pci ?? []).length > 0],
  ["spec.devices.usb", ({ devices }) => (devices?.usb ?? []).length > 0],
  ["spec.memory.hugePages", ({ memory }) => memory?.hugePages !== undefined],
  ["spec.highAvailability", ({ highAvailability }) => highAvailability !== undefined],
  ["spec.powerState: Suspended", ({ powerState }) => powerState === "Suspended"],
  ["spec.placement.mode: Enforce", ({ placement }) => placement?.mode === "Enforce"],
  ["spec.placement.awayFrom", ({ placement }) => placement?.awayFrom !== undefined],
  ["spec.adopt", ({ adopt }) => adopt !== undefined],
  ["spec.source.clone.mode: Linked", ({ source }) => source?.clone?.mode === "Linked"],
  ["spec.source.clone.snapshot", ({ source }) => source?.clone?.snapshot !== undefined],
  ["spec.source.importedDisk.mode: Take", ({ source }) => source?.importedDisk?.mode === "Take"],
  ["spec.source.importedDisk.path", ({ source }) => source?.importedDisk?.path !== undefined],
  ["spec.disks[].state: Absent", ({ disks = [] }) => disks.some((disk) => disk.state === "Absent")],
  ["spec.cloudInit data that is inline or in a Secret", ({ cloudInit }) => hasContent(cloudInit)],
  [
    "spec.cloudInit.datasource: ConfigDrive",
    ({ cloudInit }) => cloudInit?.datasource === "ConfigDrive",
  ],
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
