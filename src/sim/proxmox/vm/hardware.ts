import type { GuestConfig, Section } from "../config-file.ts";
import { drivesOf, isCdrom, parseDrive, parseSize } from "./drive.ts";

const defaultMemoryMib = 512;

export function memoryBytes({ main }: GuestConfig): number {
  const text = (main.get("memory") ?? String(defaultMemoryMib)).replace(/^current=/, "");
  return Number.parseInt(text, 10) * 1024 ** 2;
}

export function vcpusOf({ main }: GuestConfig): number {
  const all = Number(main.get("sockets") ?? "1") * Number(main.get("cores") ?? "1");
  return Number(main.get("vcpus") ?? String(all));
}

/** The disk that is booted from counts as the guest's disk. */
export function bootDiskBytes({ main }: GuestConfig): number {
  const first = bootOrder(main).find((key) => {
    const text = main.get(key);
    return text !== undefined && /^(ide|sata|scsi|virtio)/.test(key) && !isCdrom(parseDrive(text));
  });
  if (first === undefined) return 0;
  const size = parseDrive(main.get(first) ?? "").options.get("size") ?? "0";
  return parseSize(size) ?? 0;
}

export function bootOrder(main: Section): string[] {
  const order = /(?:^|,)order=([^,]*)/.exec(main.get("boot") ?? "")?.[1];
  return order?.split(";").filter((device) => device !== "") ?? [];
}

/** What a new guest boots from: its first disk, then its CD drives, then its first network card. */
export function defaultBootOrder(main: Section): string[] {
  const drives = drivesOf(main).filter(([key]) => /^(ide|sata|scsi|virtio)/.test(key));
  const disk = drives.filter(([, drive]) => !isCdrom(drive)).map(([key]) => key);
  const first = [...disk].sort(byBus)[0];
  const cdroms = drives.filter(([, drive]) => isCdrom(drive)).map(([key]) => key);
  const nets = [...main.keys()].filter((key) => /^net\d+$/.test(key)).sort();
  return [first, ...cdroms, nets[0]].filter((device) => device !== undefined);
}

/** Buses in the order in which firmware looks at them. */
const buses = ["ide", "scsi", "virtio", "sata"];

function byBus(left: string, right: string): number {
  const rank = (key: string): number => buses.indexOf(key.replace(/\d+$/, ""));
  const numberOf = (key: string): number => Number(/\d+$/.exec(key)?.[0] ?? "0");
  return rank(left) - rank(right) || numberOf(left) - numberOf(right);
}

export function agentIsEnabled({ main }: GuestConfig): boolean {
  const text = main.get("agent") ?? "0";
  const first = text.split(",").find((part) => !part.includes("=") || part.startsWith("enabled="));
  return (first ?? "0").replace(/^enabled=/, "") === "1";
}
