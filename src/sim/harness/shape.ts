/** Lines of which each machine has its own, or which tell of its past. */
const own = /^(#.*|smbios1|vmgenid|meta|unused\d+|lock|parent|vmstate|runningmachine|runningcpu)$/;
/** A disk that people put there; and discs, which come and go with the first boot. */
const passing = /disk-9\b|media=cdrom/;

/**
 * What a machine is, as its file tells it, without what is only its own: its ids, its volumes' names
 * and its addresses. Which number a disk or a card has among its like is of no matter either.
 */
export function shapeOf(text: string, isRunning: boolean): ReadonlyMap<string, string> {
  const shape = new Map([["running", String(isRunning)]]);
  const alike = new Map<string, string[]>();
  const [current = ""] = text.split(/^\[/m);
  for (const line of current.split("\n")) {
    const [, key = "", value = ""] = /^(\w+): (.*)$/.exec(line) ?? [];
    if (key === "" || own.test(key) || passing.test(value)) continue;
    const kind = /^(scsi|virtio|sata|ide|net)\d+$/.exec(key)?.[1];
    if (kind === undefined) shape.set(key, plainOf(value));
    else alike.set(kind, [...(alike.get(kind) ?? []), plainOf(value)]);
  }
  for (const [kind, values] of alike) shape.set(kind, values.toSorted().join(" | "));
  return shape;
}

/** What one of them has and the other has not, or has otherwise. */
export function differencesOf(
  left: ReadonlyMap<string, string>,
  right: ReadonlyMap<string, string>,
): string[] {
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((key) => left.get(key) !== right.get(key))
    .map(
      (key) => `${key} is ${left.get(key) ?? "absent"}, and ${right.get(key) ?? "absent"} there`,
    );
}

function plainOf(value: string): string {
  return (
    value
      .replaceAll(/[\w-]+:(\d+\/)?(vm|base)-\d+-[\w.-]+/g, "volume")
      // The server puts a CD drive behind the disks that are booted from, or not, as it likes.
      .replaceAll(/;ide\d+/g, "")
      .replaceAll(/([0-9A-F]{2}:){5}[0-9A-F]{2}/gi, "address")
  );
}
