/** How many devices of a kind there may be: "scsi" 0 to 30 … The schemas only say "scsi[n]". */
const limits: Readonly<Record<string, number>> = {
  scsi: 31,
  virtio: 16,
  sata: 6,
  ide: 4,
  net: 32,
  ipconfig: 32,
  unused: 256,
  serial: 4,
  parallel: 3,
  hostpci: 16,
  usb: 14,
  numa: 8,
  virtiofs: 10,
  link: 8,
};

/** Whether a number is one of the family. */
export function isMember(family: string, number: string): boolean {
  return /^(0|[1-9]\d*)$/.test(number) && Number(number) < (limits[family] ?? 0);
}

export function familySize(family: string): number {
  return limits[family] ?? 0;
}
