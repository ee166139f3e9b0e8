import type { ClaimSpec } from "../../api/index.ts";
import type { Failure, Machine, SeenDisk } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { sizeText } from "./quantities.ts";

/** One machine, and what is known of it. */
interface At {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
}

/**
 * A disk that the machine had, whose place is empty and whose volume the machine does not have. It
 * may be there in another place and under another name, which only a person can tell: so whatever
 * it can be is named, and in its own place Berth recognises it.
 */
export function lostDiskFailure({ claim, machine }: At, name: string): Failure {
  const slot = machine.mark?.disks[name] ?? "its place";
  const own = claim.volumes?.findLast(({ role, disk }) => role === "Disk" && disk === name);
  const bytes = own?.size === undefined ? undefined : Number(own.size);
  const others = undeclaredDisks(machine, bytes ?? 0);
  const size = bytes === undefined ? "" : ` (${sizeText(bytes)})`;
  return {
    category: "Missing",
    message:
      `The disk ${name} was the machine's and is no longer attached to it: ${slot} is empty, ` +
      `and the VM does not have its volume ${own?.id ?? ""}${size}.${toldOf(others)}`,
    remedy:
      `${movedRemedy(others, slot)}Attach the disk as ${slot} of VM ${claim.externalId} again on ` +
      "the hypervisor, or remove its entry from spec.disks.",
  };
}

/** A hypervisor lets people make a disk larger, and never smaller. */
function undeclaredDisks({ disks, volumes }: Machine, bytes: number): SeenDisk[] {
  return disks.filter(({ name, volume, sizeBytes }) => {
    const isOwn = volumes.some(({ id, isOwn: is }) => id === volume && is);
    return name === undefined && isOwn && sizeBytes >= bytes;
  });
}

function toldOf(others: readonly SeenDisk[]): string {
  if (others.length === 0) return "";
  const told = others.map(({ slot, volume, sizeBytes }) => {
    return `${slot} (${volume}, ${sizeText(sizeBytes)})`;
  });
  return ` Attached and not declared: ${listText(told)}.`;
}

function movedRemedy(others: readonly SeenDisk[], slot: string): string {
  if (others.length === 0) return "";
  const slots = others.map((other) => other.slot).join(" or ");
  return (
    `If ${slots} is this disk under another name, detach it and attach it as ${slot}: ` +
    "Berth continues by itself. Otherwise: "
  );
}
