import type { FirmwareShape } from "../../../hypervisor/index.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import type { ConfigChange } from "./config.ts";
import { present } from "./present.ts";
import type { Values } from "./values.ts";

const modules = { "V1.2": "v1.2", "V2.0": "v2.0" } as const;

/** The kind of firmware. Its volumes are made apart, by `firmwareVolumes`. */
export function writeFirmware({ type }: FirmwareShape): ConfigChange {
  const set = type === undefined ? {} : { bios: type === "UEFI" ? "ovmf" : "seabios" };
  return { set, remove: [] };
}

/**
 * The volumes that the firmware needs and does not have. Their sizes are fixed: the `1` of
 * `storage:1` only says that a volume is to be made (qemu-server, create_efidisk).
 */
export function firmwareVolumes(
  { type, secureBoot = false, tpm }: FirmwareShape,
  values: Values,
  storage: string,
): Record<string, string> {
  const needsVariables = type === "UEFI" && values["efidisk0"] === undefined;
  const version = tpm === undefined || tpm === "None" ? undefined : modules[tpm];
  const needsModule = version !== undefined && values["tpmstate0"] === undefined;
  const keys = secureBoot ? "1" : "0";
  return present({
    efidisk0: needsVariables ? `${storage}:1,efitype=4m,pre-enrolled-keys=${keys}` : undefined,
    tpmstate0: needsModule ? `${storage}:1,version=${version}` : undefined,
  });
}

export function readFirmware(values: Values): FirmwareShape {
  const { bios, efidisk0, tpmstate0 } = values;
  const keys = property(parseProperties(efidisk0 ?? "", "file"), "pre-enrolled-keys");
  return {
    type: bios === "ovmf" ? "UEFI" : "BIOS",
    secureBoot: bios === "ovmf" && keys === "1",
    tpm: tpmstate0 === undefined ? "None" : readModule(tpmstate0),
    keepsVariables: efidisk0 !== undefined,
  };
}

/** Proxmox VE 7 stores nothing for the newer version, its default; 8 and 9 always store one. */
function readModule(text: string): "V1.2" | "V2.0" {
  return property(parseProperties(text, "file"), "version") === "v1.2" ? "V1.2" : "V2.0";
}

/** What a firmware's volume cannot become any more, by its field; undefined if it can. */
export function fixedFirmware(wanted: FirmwareShape, values: Values): string | undefined {
  const seen = readFirmware(values);
  const isOther = <K extends "secureBoot" | "tpm">(key: K): boolean => {
    return wanted[key] !== undefined && wanted[key] !== seen[key];
  };
  const hasKeys = values["efidisk0"] !== undefined && isOther("secureBoot");
  // Keys are enrolled in the volume with the variables when that is made, and never after.
  if (hasKeys && (wanted.type ?? seen.type) === "UEFI") return "firmware.secureBoot";
  // A module that goes takes with it the keys that the guest's disks may need.
  return values["tpmstate0"] !== undefined && isOther("tpm") ? "firmware.tpm" : undefined;
}
