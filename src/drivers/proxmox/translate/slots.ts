import type { Bus } from "../../../hypervisor/index.ts";

/** The drives that a config may have (qemu-server 9.2, the same since 6.0). */
const busSlots: Readonly<Record<Exclude<Bus, "nvme">, number>> = {
  scsi: 31,
  virtio: 16,
  sata: 6,
  ide: 4,
};

/** Where the drive with the cloud-init data sits. No disk is ever put there. */
export const cloudInitSlot = "ide2";

const networkSlots = 32;

/** PCI devices since 6.0; USB devices since 7.1, for guests that are not very old. */
const deviceSlots = { hostpci: 16, usb: 14 } as const;

/** All that may hold a volume: drives, firmware, module, detached volumes and saved memory. */
const drive = /^(?:(scsi|virtio|sata|ide)\d+|efidisk0|tpmstate0|unused\d+|vmstate)$/;

export function isDrive(key: string): boolean {
  return drive.test(key);
}

export function busOf(slot: string): Bus | undefined {
  const bus = /^(scsi|virtio|sata|ide)\d+$/.exec(slot)?.[1];
  return bus === "scsi" || bus === "virtio" || bus === "sata" || bus === "ide" ? bus : undefined;
}

/** The first free slot of a bus; undefined when there is none. */
export function freeDiskSlot(bus: Bus, taken: ReadonlySet<string>): string | undefined {
  if (bus === "nvme") return undefined;
  return numbered(bus, busSlots[bus]).find((slot) => slot !== cloudInitSlot && !taken.has(slot));
}

export function freeNetworkSlot(taken: ReadonlySet<string>): string | undefined {
  return numbered("net", networkSlots).find((slot) => !taken.has(slot));
}

export function freeDeviceSlot(
  family: keyof typeof deviceSlots,
  taken: ReadonlySet<string>,
): string | undefined {
  return numbered(family, deviceSlots[family]).find((slot) => !taken.has(slot));
}

/** "net3" is configured by "ipconfig3". */
export function addressSlot(networkSlot: string): string {
  return networkSlot.replace(/^net/, "ipconfig");
}

function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}
