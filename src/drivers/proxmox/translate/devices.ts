import type {
  AgentOptions,
  CdromShape,
  DisplayShape,
  PciShape,
  UsbShape,
} from "../../../hypervisor/index.ts";
import {
  formatProperties,
  parseProperties,
  property,
  withProperties,
} from "../wire/property-string.ts";
import { ifSaid, present } from "./present.ts";
import { mebibyte } from "./sizes.ts";
import { busOf } from "./slots.ts";
import { flag, numberOf } from "./values.ts";

const displays = {
  None: "none",
  Standard: "std",
  Virtio: "virtio",
  VirtioGL: "virtio-gl",
  QXL: "qxl",
  VMware: "vmware",
  Serial: "serial0",
} as const;

export const displayMebibytes = { least: 4, most: 512 };

export function writeDisplay({ type, memoryBytes }: DisplayShape, current: string): string {
  const options = withProperties(parseProperties(current, "type"), {
    ...present({
      type: ifSaid(type, (word) => displays[word]),
      memory: ifSaid(memoryBytes, (bytes) => String(Math.ceil(bytes / mebibyte))),
    }),
  });
  return formatProperties(options, "type");
}

export function readDisplay(text: string | undefined): DisplayShape {
  const options = parseProperties(text ?? "", "type");
  const word = property(options, "type") ?? displays.Standard;
  // cast: the keys of a literal table are its own type.
  const types = Object.keys(displays) as (keyof typeof displays)[];
  const memory = numberOf(property(options, "memory"));
  return present({
    type: types.find((type) => displays[type] === word),
    memoryBytes: ifSaid(memory, (count) => count * mebibyte),
  });
}

/** `none` is an empty drive. What the server adds to a medium, such as its size, stays. */
export function writeCdrom({ medium }: CdromShape, current: string | undefined): string {
  const file = property(parseProperties(current ?? "none", "file"), "file");
  const wanted = medium === "" ? "none" : medium;
  if (current !== undefined && (wanted === undefined || wanted === file)) return current;
  return `${wanted ?? "none"},media=cdrom`;
}

export function readCdrom(text: string, name: string, slot: string): CdromShape {
  const file = property(parseProperties(text, "file"), "file") ?? "none";
  const bus = busOf(slot);
  const known = bus === "sata" || bus === "ide" || bus === "scsi" ? bus : undefined;
  return { name, ...present({ bus: known }), medium: file === "none" ? "" : file };
}

export function writePci(device: PciShape, current: string): string {
  const { mapping, mediatedType, pcie, primaryDisplay, romBar } = device;
  const options = withProperties(parseProperties(current, "host"), {
    ...present({ mapping, mdev: mediatedType }),
    ...(pcie === undefined ? {} : { pcie: pcie ? "1" : undefined }),
    ...(primaryDisplay === undefined ? {} : { "x-vga": primaryDisplay ? "1" : undefined }),
    ...(romBar === undefined ? {} : { rombar: romBar ? undefined : "0" }),
  });
  return formatProperties(options, "host");
}

export function readPci(text: string, name: string): PciShape {
  const options = parseProperties(text, "host");
  return {
    name,
    ...present({
      mapping: property(options, "mapping"),
      mediatedType: property(options, "mdev"),
    }),
    pcie: property(options, "pcie") === "1",
    primaryDisplay: property(options, "x-vga") === "1",
    romBar: property(options, "rombar") !== "0",
  };
}

/** A new one is attached as USB 3 where nothing is said: Proxmox's own default is older. */
export function writeUsb({ mapping, usb3 }: UsbShape, current: string | undefined): string {
  const said = usb3 ?? (current === undefined ? true : undefined);
  const options = withProperties(parseProperties(current ?? "", "host"), {
    ...present({ mapping }),
    ...(said === undefined ? {} : { usb3: said ? "1" : undefined }),
  });
  return formatProperties(options, "host");
}

export function readUsb(text: string, name: string): UsbShape {
  const options = parseProperties(text, "host");
  const mapping = property(options, "mapping");
  return { name, ...present({ mapping }), usb3: property(options, "usb3") === "1" };
}

/** Since 9.1 the option is `freeze-fs`, and the older word still means it. */
const freezing = ["freeze-fs", "freeze-fs-on-backup", "guest-fsfreeze"] as const;

export interface Agent {
  readonly isEnabled?: boolean | undefined;
  readonly options?: AgentOptions | undefined;
}

export function writeAgent({ isEnabled, options = {} }: Agent, current: string): string {
  const { trimAfterClone, freezeForBackup } = options;
  const agent = parseProperties(current, "enabled");
  const enabled = isEnabled === undefined ? property(agent, "enabled") : flag(isEnabled);
  const freeze = {
    "freeze-fs": undefined,
    "guest-fsfreeze": undefined,
    "freeze-fs-on-backup": freezeForBackup === true ? undefined : "0",
  };
  const changed = withProperties(agent, {
    enabled: enabled ?? "0",
    ...(trimAfterClone === undefined
      ? {}
      : { fstrim_cloned_disks: trimAfterClone ? "1" : undefined }),
    ...(freezeForBackup === undefined ? {} : freeze),
  });
  return formatProperties(changed, "enabled");
}

export function readAgent(text: string | undefined): {
  readonly guestAgent: boolean;
  readonly agentOptions: AgentOptions;
} {
  const agent = parseProperties(text ?? "0", "enabled");
  const isFrozen = freezing.every((key) => property(agent, key) !== "0");
  return {
    guestAgent: property(agent, "enabled") === "1",
    agentOptions: {
      trimAfterClone: property(agent, "fstrim_cloned_disks") === "1",
      freezeForBackup: isFrozen,
    },
  };
}
