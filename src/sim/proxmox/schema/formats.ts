import { isIP } from "node:net";
import type { Release } from "../release.ts";
import { isCpuModel } from "./cpu-models.ts";

/**
 * A format by name: what is wrong with the value, as Proxmox says it (its texts end a line), or
 * undefined. A name that is not in the table is not checked.
 */
export function formatFault(name: string, value: string, release: Release): string | undefined {
  const whole = formats[name];
  if (whole !== undefined) return whole(value, release);
  if (name.endsWith("-opt"))
    return value === "" ? undefined : formatFault(base(name), value, release);
  if (!name.endsWith("-list")) return undefined;
  for (const part of splitList(value)) {
    const fault = formatFault(base(name), part, release);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Lists are separated by commas, semicolons, spaces or NUL, mixed as people like. */
export function splitList(value: string): string[] {
  return value.split(/[,;\s\0]+/).filter((part) => part !== "");
}

type Fault = (value: string, release: Release) => string | undefined;

const formats: Readonly<Record<string, Fault>> = {
  "pve-vmid": matches(/^[1-9][0-9]{2,8}$/, "value does not look like a valid VM ID"),
  "pve-node": matches(
    /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/i,
    "value does not look like a valid node name",
  ),
  "dns-name": dnsNameFault,
  "pve-tag": matches(/^[a-z0-9_][a-z0-9_\-+.]*$/i, "invalid characters in tag"),
  "pve-configid": told(/^[a-z][a-z0-9_-]+$/i, (value) => `invalid configuration ID '${value}'`),
  "pve-storage-id": told(
    /^[a-z][a-z0-9\-_.]*[a-z0-9]$/i,
    (value) => `storage ID '${value}' contains illegal characters`,
  ),
  "pve-storage-content": told(
    /^(images|rootdir|vztmpl|iso|backup|snippets|import|none)$/,
    (value) => `invalid content type '${value}'`,
  ),
  "pve-poolid": matches(
    /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+){0,2}$/,
    "value does not look like a valid pool name",
  ),
  "pve-volume-id": volumeIdFault,
  "pve-volume-id-or-qm-path": (value) =>
    /^(none|cdrom|\/.*)$/.test(value) ? undefined : volumeIdFault(value),
  "pve-volume-id-or-absolute-path": (value) =>
    value.startsWith("/") ? undefined : volumeIdFault(value),
  "pve-vm-cpu-conf": cpuFault,
  urlencoded: told(/^[-%a-zA-Z0-9_.!~*'()]*$/, (value) => `invalid urlencoded string: ${value}`),
  "disk-size": matches(/^\d+(\.\d+)?[KMGT]?$/, "value does not look like a valid disk size"),
  "mac-addr": matches(
    /^[a-f0-9][02468ace](:[a-f0-9]{2}){5}$/i,
    "value does not look like a valid unicast MAC address",
  ),
  "pve-bridge-id": told(/^[-_.\w\d]+$/, (value) => `invalid bridge ID '${value}'`),
  "pve-iface": matches(/^[a-z][a-z0-9_]{1,20}([:.]\d+)?$/i, "invalid network interface name"),
  ipv4: (value) =>
    isIP(value) === 4 ? undefined : "value does not look like a valid IPv4 address\n",
  ipv6: (value) =>
    isIP(value) === 6 ? undefined : "value does not look like a valid IPv6 address\n",
  ip: (value) => (isIP(value) > 0 ? undefined : "value does not look like a valid IP address\n"),
  address: (value) => addressFault(value),
  "pve-ipv4-config": (value) => (isIpv4Config(value) ? undefined : configFault("ipv4")),
  "pve-ipv6-config": (value) => (isIpv6Config(value) ? undefined : configFault("ipv6")),
  "pve-userid": matches(
    /^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+$/,
    "value does not look like a valid user name",
  ),
  "pve-startup-order": matches(
    /^((order=)?\d+|(up|down)=\d+)(,((order=)?\d+|(up|down)=\d+))*$/,
    "unable to parse startup options",
  ),
};

function matches(pattern: RegExp, fault: string): Fault {
  return (value) => (pattern.test(value) ? undefined : `${fault}\n`);
}

function told(pattern: RegExp, fault: (value: string) => string): Fault {
  return (value) => (pattern.test(value) ? undefined : `${fault(value)}\n`);
}

function base(name: string): string {
  return name.replace(/-(list|opt)$/, "");
}

const dnsLabel = "([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)";
const dnsName = new RegExp(`^(${dnsLabel}\\.)*${dnsLabel}$`);

function dnsNameFault(value: string): string | undefined {
  return dnsName.test(value) ? undefined : "value does not look like a valid DNS name\n";
}

function volumeIdFault(value: string): string | undefined {
  return /^[a-z][a-z0-9\-_.]*[a-z0-9]:.+$/i.test(value)
    ? undefined
    : `unable to parse volume ID '${value}'\n`;
}

function addressFault(value: string): string | undefined {
  if (isIP(value) > 0 || dnsNameFault(value) === undefined) return undefined;
  return "value does not look like a valid address: ".concat(value, "\n");
}

function cpuFault(value: string, release: Release): string | undefined {
  const first = value.split(",").find((part) => !part.includes("=") || part.startsWith("cputype="));
  const model = first?.replace(/^cputype=/, "") ?? "kvm64";
  if (model.startsWith("custom-") || isCpuModel(model, release)) return undefined;
  return `Built-in cputype '${model}' is not defined (missing 'custom-' prefix?)\n`;
}

function configFault(kind: string): string {
  return `value does not look like a valid ${kind} network configuration\n`;
}

function isIpv4Config(value: string): boolean {
  if (value === "dhcp") return true;
  const [address = "", bits = "", ...rest] = value.split("/");
  return isIP(address) === 4 && rest.length === 0 && /^\d+$/.test(bits) && Number(bits) <= 32;
}

function isIpv6Config(value: string): boolean {
  if (value === "dhcp" || value === "auto") return true;
  const [address = "", bits = "", ...rest] = value.split("/");
  return isIP(address) === 6 && rest.length === 0 && /^\d+$/.test(bits) && Number(bits) <= 128;
}
