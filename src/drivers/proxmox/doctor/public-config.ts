import { formatMark, readMark } from "../../../hypervisor/index.ts";
import { isDrive } from "../translate/slots.ts";
import { formatProperties, parseProperties, property } from "../wire/property-string.ts";

/**
 * A machine's config as far as it may be shown to others. What is not known here to be harmless is
 * left out: cloud-init with its passwords, keys and addresses, arguments, hooks, devices of the
 * host, serial numbers, MAC addresses, and what people wrote into the notes. Pure.
 */
export function publicConfig(
  values: Readonly<Record<string, string>>,
  vmid: number,
): Record<string, string> {
  const entries = Object.entries(values).flatMap(([key, value]): [string, string][] => {
    const shown = publicValue(key, value, vmid);
    return shown === undefined ? [] : [[key, shown]];
  });
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Figures, switches and names of models. */
const harmless = new Set(
  (
    "acpi agent arch audio0 balloon bios boot bootdisk citype ciupgrade cores cpu cpulimit " +
    "cpuunits freeze hotplug hugepages keephugepages kvm localtime lock machine memory name numa " +
    "onboot ostype protection rng0 scsihw shares sockets startup tablet tags template vcpus vga " +
    "watchdog"
  ).split(" "),
);

function publicValue(key: string, value: string, vmid: number): string | undefined {
  if (harmless.has(key)) return value;
  if (key === "description") return publicNotes(value);
  if (key === "smbios1") return publicSmbios(value);
  if (/^net\d+$/.test(key)) return publicNetwork(value, vmid, Number(key.slice("net".length)));
  if (/^serial\d+$/.test(key)) return value === "socket" ? value : undefined;
  return isDrive(key) && key !== "vmstate" ? publicDrive(value) : undefined;
}

/** Of the notes only our own line: without it a rehearsal could not tell whose a machine is. */
function publicNotes(text: string): string | undefined {
  const { mark } = readMark(text);
  return mark === undefined ? undefined : formatMark(mark);
}

/** The identity, without maker and serial number. */
function publicSmbios(text: string): string | undefined {
  const uuid = property(parseProperties(text, "uuid"), "uuid");
  return uuid === undefined ? undefined : `uuid=${uuid}`;
}

const mac = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;

/** MAC addresses are made up, from the machine's id and the card's number: always the same. */
function publicNetwork(text: string, vmid: number, index: number): string {
  const hex = vmid.toString(16).padStart(8, "0") + (index % 256).toString(16).padStart(2, "0");
  const madeUp = `02:${(hex.match(/../g) ?? []).join(":")}`.toUpperCase();
  const shown = parseProperties(text, "model").map(([key, value]) => {
    return [key, mac.test(value) ? madeUp : value] as const;
  });
  return formatProperties(shown, "model");
}

const telling = new Set(["serial", "wwn", "product", "vendor"]);

/** A path or a device of the host names hardware; a volume of a storage does not. */
function publicDrive(text: string): string | undefined {
  const options = parseProperties(text, "file");
  const file = property(options, "file") ?? "";
  if (file.startsWith("/")) return undefined;
  return formatProperties(
    options.filter(([key]) => !telling.has(key)),
    "file",
  );
}
