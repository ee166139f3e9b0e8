import { readMark, writeMark } from "../../../hypervisor/index.ts";
import type { CloudInitShape, Failure, Mark, Shape } from "../../../hypervisor/index.ts";
import { type ConfigChange, joinChanges } from "../translate/config.ts";
import { firmwareVolumes, fixedFirmware } from "../translate/firmware.ts";
import { cloudInitDrive, writeShape } from "../translate/shape.ts";
import { busOf, cloudInitSlot } from "../translate/slots.ts";
import type { Values } from "../translate/values.ts";
import { parseVolume } from "../translate/volumes.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import type { Standing } from "./standing.ts";

/** Everything that a shape changes on a machine that stands, or why it cannot. Pure. */
export function changeFor(
  shape: Shape,
  { mark, config }: Pick<Standing, "mark" | "config">,
): (ConfigChange & { readonly makesVolume: boolean }) | Failure {
  const { values } = config;
  const refusal = unstamped(shape, mark) ?? cannotBecome(shape, values);
  if (refusal !== undefined) return refusal;
  const volumes = volumesFor(shape, values);
  if ("category" in volumes) return volumes;
  const change = joinChanges([
    writeShape(shape, mark, values),
    describe(shape.notes, values, mark),
    volumes,
  ]);
  return { ...change, makesVolume: Object.keys(volumes.set).length > 0 };
}

/** A change without what is so already. */
export function effective({ set, remove }: ConfigChange, values: Values): ConfigChange {
  const news = Object.entries(set).filter(([key, value]) => {
    // A password is shown as asterisks, and counts for the first boot only: it is never changed.
    const isKept = key === "cipassword" && values[key] !== undefined;
    return values[key] !== value && !isKept;
  });
  return {
    set: { ...keptOrder(news, values), ...Object.fromEntries(news) },
    remove: remove.filter((key) => values[key] !== undefined),
  };
}

/**
 * The server puts every CD drive that is written into the order to boot in, unless it is said. What
 * somebody took away since is left out: the whole change would be refused because of it.
 */
function keptOrder(news: readonly (readonly [string, string])[], values: Values): Values {
  const { boot } = values;
  const hasDrive = news.some(([, value]) => value.includes("media=cdrom"));
  if (!hasDrive || boot === undefined) return {};
  const order = property(parseProperties(boot, "legacy"), "order");
  if (order === undefined) return { boot };
  const there = order.split(";").filter((slot) => slot in values);
  return there.length === 0 ? {} : { boot: `order=${there.join(";")}` };
}

export function notStamped(name: string): Failure {
  return {
    category: "ConfigurationError",
    message: `the mark has no place for ${name} yet: it has to be stamped first`,
  };
}

/** A part that the mark has no place for yet. Disks are made by operations of their own. */
function unstamped(shape: Shape, mark: Mark): Failure | undefined {
  for (const kind of ["networks", "cdroms", "pci", "usb"] as const) {
    const unknown = (shape[kind] ?? []).find(({ name }) => !(name in (mark[kind] ?? {})));
    if (unknown !== undefined) return notStamped(unknown.name);
  }
  return undefined;
}

function cannotBecome({ firmware }: Shape, values: Values): Failure | undefined {
  const field = firmware === undefined ? undefined : fixedFirmware(firmware, values);
  if (field === undefined) return undefined;
  const message = `${field} was decided when the machine was made, and cannot be changed`;
  return { category: "ReplacementRequired", message };
}

function describe(notes: string | undefined, values: Values, mark: Mark): ConfigChange {
  if (notes === undefined) return { set: {}, remove: [] };
  const { person } = readMark(values["description"] ?? "");
  const isSame = person === notes;
  return { set: isSame ? {} : { description: writeMark(notes, mark) }, remove: [] };
}

/** The small volumes that a shape needs and the machine does not have. */
function volumesFor({ firmware = {}, cloudInit }: Shape, values: Values): ConfigChange | Failure {
  const storage = firmware.storage ?? bootStorage(values);
  const set = firmwareVolumes(firmware, values, storage ?? "");
  if (storage === undefined && Object.keys(set).length > 0) {
    const message = "firmware.storage: there is no disk yet beside which it could lie";
    return { category: "ConfigurationError", message };
  }
  return { set: { ...set, ...driveFor(cloudInit ?? {}, values) }, remove: [] };
}

/** A disc of our own carries everything by itself. */
function driveFor({ seed, storage }: CloudInitShape, values: Values): Record<string, string> {
  if (seed !== undefined || storage === undefined) return {};
  return cloudInitDrive(values) === undefined ? { [cloudInitSlot]: `${storage}:cloudinit` } : {};
}

function bootStorage(values: Values): string | undefined {
  const slot = bootSlot(values);
  const volume = property(parseProperties(values[slot ?? ""] ?? "", "file"), "file");
  return parseVolume(volume ?? "")?.storage;
}

/** Where a machine starts from, as far as its disks go. */
export function bootSlot(values: Values): string | undefined {
  const order = property(parseProperties(values["boot"] ?? "", "legacy"), "order") ?? "";
  const disks = Object.keys(values).filter((slot) => {
    return busOf(slot) !== undefined && isDisk(values[slot] ?? "");
  });
  return order.split(";").find((slot) => disks.includes(slot)) ?? disks.toSorted()[0];
}

export function isDisk(text: string): boolean {
  return property(parseProperties(text, "file"), "media") !== "cdrom";
}
