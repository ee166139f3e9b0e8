import { readMark, writeMark } from "../../../hypervisor/index.ts";
import type { CloudInitShape, Failure, Mark, Shape } from "../../../hypervisor/index.ts";
import type { WholeConfig } from "../config-reader.ts";
import { type ConfigChange, joinChanges } from "../translate/config.ts";
import { firmwareVolumes, fixedFirmware } from "../translate/firmware.ts";
import { formatOrder, isDisk, readOrder } from "../translate/boot-order.ts";
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
    seedAgain(shape, config),
    writeShape(shape, mark, values),
    describe(shape.notes, values, mark),
    volumes,
  ]);
  return { ...change, makesVolume: Object.keys(volumes.set).length > 0 };
}

/**
 * A seed that waits for the next start to leave its drive: the change was written and not applied.
 * Written again, the server applies it.
 */
function seedAgain({ cloudInit }: Shape, { values, pending }: WholeConfig): ConfigChange {
  const text = values[cloudInitSlot];
  const isWaiting = cloudInit?.seed !== undefined && pending.keys.includes(cloudInitSlot);
  return { set: isWaiting && text !== undefined ? { [cloudInitSlot]: text } : {}, remove: [] };
}

/** A change without what is so already, and does not only wait for the next start. */
export function effective(
  { set, remove }: ConfigChange,
  values: Values,
  pendingKeys: readonly string[] = [],
): ConfigChange {
  const news = Object.entries(set).filter(([key, value]) => {
    // A password is shown as asterisks, and counts for the first boot only: it is never changed.
    const isKept = key === "cipassword" && values[key] !== undefined;
    const isWaiting = key === cloudInitSlot && pendingKeys.includes(key);
    return (values[key] !== value || isWaiting) && !isKept;
  });
  return {
    set: withDrives(Object.fromEntries(news), values),
    remove: remove.filter((key) => values[key] !== undefined),
  };
}

/**
 * The server appends each CD drive that is written to the order to boot in, unless it is in it, and
 * takes the parameters of a request one by one in the order of a Perl hash, which is none
 * (qemu-server, update_vm_api). An order that is sent with a drive and does not name it would be
 * the result or not, as it happens; and while the VM runs, the other one waits for its next start.
 * So an order that is sent names the drives beside it. One without them is sent by itself later.
 */
function withDrives(set: Values, values: Values): Values {
  const drives = Object.keys(set).filter((slot) => {
    return busOf(slot) !== undefined && !isDisk(set[slot] ?? "");
  });
  if (drives.length === 0) return set;
  const { boot: sent, ...others } = set;
  const text = sent ?? values["boot"];
  if (text === undefined) return set;
  const order = readOrder(text);
  if (order === undefined) return { ...others, boot: text };
  if (sent === undefined) return set;
  const boot = formatOrder([...order, ...drives.filter((slot) => !order.includes(slot))]);
  return boot === values["boot"] ? others : { ...others, boot };
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
export function volumesFor(
  { firmware = {}, cloudInit }: Shape,
  values: Values,
): ConfigChange | Failure {
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
  const order = readOrder(values["boot"] ?? "") ?? [];
  const disks = Object.keys(values).filter((slot) => {
    return busOf(slot) !== undefined && isDisk(values[slot] ?? "");
  });
  return order.find((slot) => disks.includes(slot)) ?? disks.toSorted()[0];
}
