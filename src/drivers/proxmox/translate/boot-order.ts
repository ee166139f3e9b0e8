import { parseProperties, property } from "../wire/property-string.ts";
import type { Values } from "./values.ts";

/** The slots of an order to boot in; undefined: it is written in the words of old releases. */
export function readOrder(boot: string): string[] | undefined {
  const order = property(parseProperties(boot, "legacy"), "order");
  return order?.split(";").filter((slot) => slot !== "");
}

export function formatOrder(slots: readonly string[]): string {
  return `order=${slots.join(";")}`;
}

/** Whether a drive is a disk; else it is a CD drive. */
export function isDisk(text: string): boolean {
  return property(parseProperties(text, "file"), "media") !== "cdrom";
}

/**
 * The CD drives of an order that have no name, such as that of a first-boot ISO. They stay at its
 * end: while the VM runs, one that is taken out would be appended again with its next change.
 */
export function unnamedDrives(values: Values, named: ReadonlySet<string>): string[] {
  const order = readOrder(values["boot"] ?? "") ?? [];
  return order.filter((slot) => {
    const text = values[slot];
    return text !== undefined && !named.has(slot) && !isDisk(text);
  });
}

/** Whether an order becomes another one with the next start, but for CD drives without a name. */
export function isOtherOrder(
  values: Values,
  current: string | undefined,
  named: ReadonlySet<string>,
): boolean {
  const { boot = "" } = values;
  const drives = new Set([
    ...unnamedDrives(values, named),
    ...unnamedDrives({ ...values, boot: current ?? "" }, named),
  ]);
  const without = (text: string): string => {
    const order = readOrder(text);
    return order === undefined ? text : formatOrder(order.filter((slot) => !drives.has(slot)));
  };
  return without(boot) !== without(current ?? "");
}
