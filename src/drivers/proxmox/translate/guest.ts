import type { CloudInitShape, GuestAddress, Shape } from "../../../hypervisor/index.ts";
import { formatOptions, parseProperties, property } from "../wire/property-string.ts";
import type { ConfigChange } from "./config.ts";
import { ifSaid, present } from "./present.ts";
import { addressSlot } from "./slots.ts";
import { flag, type Values } from "./values.ts";

const windowsTypes: readonly (readonly [type: string, versions: readonly string[]])[] = [
  ["win11", ["11", "2022", "2025"]],
  ["win10", ["10", "2016", "2019"]],
  ["win8", ["8", "2012"]],
  ["win7", ["7", "2008r2"]],
];

type GuestOs = NonNullable<Shape["guestOs"]>;

/** Proxmox knows a handful of systems; what it has no word for becomes the nearest. */
export function writeGuestOs({ family, version }: GuestOs): string {
  if (family === "Linux") return "l26";
  if (family === "Solaris") return "solaris";
  if (family !== "Windows") return "other";
  const known = windowsTypes.find(([, versions]) => versions.includes(version ?? ""));
  return known?.[0] ?? "win11";
}

export function readGuestOs(type: string | undefined): GuestOs {
  if (type === "l26" || type === "l24") return { family: "Linux" };
  if (type === "solaris") return { family: "Solaris" };
  const windows = windowsTypes.find(([candidate]) => candidate === type);
  if (windows !== undefined) return { family: "Windows", version: windows[1][0] ?? "11" };
  return { family: type?.startsWith("w") === true ? "Windows" : "Other" };
}

const datasources = { NoCloud: "nocloud", ConfigDrive: "configdrive2" } as const;

/** The fields of cloud-init. The drive that carries them is a volume, and made like a disk. */
export function writeCloudInit(
  cloudInit: CloudInitShape,
  networks: Readonly<Record<string, string>>,
): ConfigChange {
  const set: Record<string, string> = present({
    ciuser: cloudInit.userName,
    citype: ifSaid(cloudInit.datasource, (source) => datasources[source]),
    cipassword: cloudInit.passwordHash,
    // The value itself is percent-encoded, and encoded once more on its way (format urlencoded).
    sshkeys: ifSaid(cloudInit.sshKeys, (keys) => encodeURIComponent(keys.join("\n"))),
    ciupgrade: ifSaid(cloudInit.upgradePackages, flag),
    nameserver: cloudInit.dnsServers?.join(" "),
    searchdomain: cloudInit.searchDomains?.join(" "),
    cicustom: ifSaid(cloudInit.files, writeFiles),
  });
  for (const address of cloudInit.addresses ?? []) {
    const slot = networks[address.network];
    if (slot !== undefined) set[addressSlot(slot)] = writeAddress(address);
  }
  return { set, remove: [] };
}

export function readCloudInit(
  values: Values,
  networks: Readonly<Record<string, string>>,
): Omit<CloudInitShape, "storage"> | undefined {
  const { ciuser, sshkeys, ciupgrade, nameserver, searchdomain, cicustom } = values;
  const addresses = Object.entries(networks).flatMap(([network, slot]) => {
    const text = values[addressSlot(slot)];
    return text === undefined ? [] : [readAddress(text, network)];
  });
  const found = present({
    userName: ciuser,
    datasource: ifSaid(values["citype"], (type) => {
      return type === datasources.NoCloud ? ("NoCloud" as const) : ("ConfigDrive" as const);
    }),
    sshKeys: ifSaid(sshkeys, readKeys),
    upgradePackages: ifSaid(ciupgrade, (text) => text === "1"),
    dnsServers: ifSaid(nameserver, words),
    searchDomains: ifSaid(searchdomain, words),
    addresses: addresses.length === 0 ? undefined : addresses,
    files: ifSaid(cicustom, readFiles),
  });
  return Object.keys(found).length === 0 ? undefined : found;
}

/**
 * The server hashes what it does not take for a hash (qemu-server Qemu.pm, `cipassword`): a newer
 * kind would be hashed once more, and nobody could log in.
 */
export function isKnownHash(hash: string): boolean {
  return /^\$(?:[156]|2[ay])(?:\$.+){2}/.test(hash);
}

function readKeys(text: string): string[] {
  return decodeURIComponent(text)
    .split("\n")
    .map((key) => key.trim())
    .filter(Boolean);
}

function writeAddress({ ipv4, ipv6 }: GuestAddress): string {
  return formatOptions({
    ip: ipv4?.address,
    gw: ipv4?.gateway,
    ip6: ipv6?.address,
    gw6: ipv6?.gateway,
  });
}

function readAddress(text: string, network: string): GuestAddress {
  const properties = parseProperties(text, "");
  const ipv4 = readFamily(property(properties, "ip"), property(properties, "gw"));
  const ipv6 = readFamily(property(properties, "ip6"), property(properties, "gw6"));
  return { network, ...present({ ipv4, ipv6 }) };
}

function readFamily(
  address: string | undefined,
  gateway: string | undefined,
): { address: string; gateway?: string } | undefined {
  if (address === undefined) return undefined;
  return { address, ...present({ gateway }) };
}

type Files = NonNullable<CloudInitShape["files"]>;

function writeFiles({ userData, vendorData, metaData, networkData }: Files): string {
  return formatOptions({
    user: userData,
    vendor: vendorData,
    meta: metaData,
    network: networkData,
  });
}

function readFiles(text: string): Files {
  const properties = parseProperties(text, "");
  return present({
    userData: property(properties, "user"),
    vendorData: property(properties, "vendor"),
    metaData: property(properties, "meta"),
    networkData: property(properties, "network"),
  });
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
