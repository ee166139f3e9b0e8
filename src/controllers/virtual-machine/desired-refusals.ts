import type { VirtualMachineSpec } from "../../api/index.ts";
import { documentsOf } from "./seed.ts";

type Asks = (spec: VirtualMachineSpec) => boolean | undefined;

/**
 * Fields that are part of the API and that nothing here can do yet. They are refused by name: to
 * leave them out silently would be to make another machine than was declared. What a hypervisor
 * cannot do its driver refuses itself.
 */
const refusals: readonly (readonly [field: string, asks: Asks])[] = [
  ["spec.memory.hugePages", ({ memory }) => memory?.hugePages !== undefined],
  ["spec.source.importedDisk.path", ({ source }) => source?.importedDisk?.path !== undefined],
  [
    "spec.cloudInit data on the hypervisor beside data that is inline or in a Secret",
    ({ cloudInit }) => hasContent(cloudInit, "own") && hasContent(cloudInit, "file"),
  ],
  [
    "spec.cloudInit.datasource: ConfigDrive with data that is inline or in a Secret",
    ({ cloudInit }) => hasContent(cloudInit, "own") && cloudInit?.datasource === "ConfigDrive",
  ],
];

/** The fields of a spec that cannot be had yet. */
export function refusedFields(spec: VirtualMachineSpec): string[] {
  return refusals.filter(([, asks]) => asks(spec)).map(([field]) => field);
}

function hasContent(cloudInit: VirtualMachineSpec["cloudInit"], where: "own" | "file"): boolean {
  const documents = cloudInit === undefined ? [] : documentsOf(cloudInit);
  return documents.some(({ file }) => (file === undefined) === (where === "own"));
}
