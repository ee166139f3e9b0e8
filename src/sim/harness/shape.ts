/** Lines of which each machine has its own, or which tell of its past. */
const own = /^(smbios1|vmgenid|meta|unused\d+|lock|parent|vmstate|runningmachine|runningcpu)$/;
const numbered = /^(scsi|virtio|sata|ide|net)\d+$/;
/** A disk that people put there, by its place or its name; and discs, which come and go. */
const passing = /^scsi[89]:|disk-9\b|-put-\d|media=cdrom/;

/** Whether a line of a machine's file is none of a declared disk, though it looks like one. */
export function isPassing(line: string): boolean {
  return passing.test(line);
}

/**
 * What a machine is, as its file tells it, without what is only its own: its ids, its addresses and
 * its volumes' names. Which number a disk or card has among its like is of no matter either.
 */
export function shapeOf(text: string, isRunning: boolean): ReadonlyMap<string, string> {
  const [current = ""] = text.split(/^\[/m);
  const lines = [...current.matchAll(/^(\w+): (.*)$/gm)]
    .map(([, key = "", value = ""]) => ({ key, value }))
    .filter(({ key, value }) => !own.test(key) && !isPassing(`${key}: ${value}`));
  const alike = Map.groupBy(lines, ({ key }) => key.replace(numbered, "$1"));
  const shape = new Map([["running", String(isRunning)]]);
  for (const [kind, those] of alike) {
    const values = those.map(({ value }) => plainOf(value));
    shape.set(kind, values.toSorted().join(" | "));
  }
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
