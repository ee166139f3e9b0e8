import { createHash } from "node:crypto";
import { type Call, demandUnlocked, guestLock, vmidOf } from "../endpoint.ts";
import { locked, type Process } from "../process.ts";
import type { Section } from "../config-file.ts";
import { recordedOf, writeDrive } from "./cloudinit-drive.ts";

const shown = ["cipassword", "ciuser", "nameserver", "searchdomain", "sshkeys"];

/** GET …/cloudinit: the options as the drive has them, and as they will be. */
export function cloudinitPending({ cluster, node, parameters }: Call): unknown {
  const config = cluster.readGuest(node, Number(parameters["vmid"]));
  const { main } = config;
  if (!cluster.quirks.readsCloudinitPending) return {};
  const drive = recordedOf(cluster, node, config);
  const mask = (key: string, value: string | null | undefined): string | null | undefined =>
    key === "cipassword" && typeof value === "string" ? "**********" : value;
  const there = shown
    .filter((key) => main.has(key))
    .map((key) => {
      const [value, old] = [mask(key, main.get(key)), mask(key, drive[key])];
      if (old === undefined) return { key, value };
      return old === null ? { key, pending: value } : { key, value: old, pending: value };
    });
  const gone = Object.keys(drive).filter((key) => !main.has(key));
  return [...there, ...gone.map((key) => ({ key, delete: 1 }))];
}

/** PUT …/cloudinit: writes the drive anew. */
export function* regenerateCloudinit(call: Call): Process<unknown> {
  const { cluster, node } = call;
  cluster.readGuest(node, vmidOf(call));
  return yield* locked(guestLock(node, vmidOf(call)), function* () {
    const config = cluster.readGuest(node, vmidOf(call));
    demandUnlocked(config);
    yield* cluster.step("write cloud-init drive");
    writeDrive(cluster, node, config);
    return null;
  });
}

/** GET …/cloudinit/dump */
export function cloudinitDump({ cluster, node, parameters }: Call): unknown {
  const vmid = Number(parameters["vmid"]);
  const { main } = cluster.readGuest(node, vmid);
  const user = userData(main, vmid);
  const network = networkData(main);
  if (parameters["type"] === "user") return user;
  if (parameters["type"] === "network") return network;
  const id = createHash("sha1").update(`${user}${network}`).digest("hex");
  return `instance-id: ${id}\n`;
}

function userData(main: Section, vmid: number): string {
  const name = main.get("name") ?? `VM${vmid}`;
  const lines = ["#cloud-config", `hostname: ${name.split(".")[0]}`, "manage_etc_hosts: true"];
  lines.push(...fullName(name, main.get("searchdomain")));
  if (main.has("ciuser")) lines.push(`user: ${main.get("ciuser") ?? ""}`);
  if (main.has("cipassword")) lines.push(`password: ${main.get("cipassword") ?? ""}`);
  lines.push(...sshKeys(main.get("sshkeys") ?? ""));
  lines.push("chpasswd:", "  expire: False", "users:", "  - default", "package_upgrade: true");
  return `${lines.join("\n")}\n`;
}

function fullName(name: string, domain: string | undefined): string[] {
  if (name.includes(".")) return [`fqdn: ${name}`];
  return domain === undefined ? [] : [`fqdn: ${name}.${domain}`];
}

function sshKeys(encoded: string): string[] {
  const keys = decodeURIComponent(encoded).split("\n");
  const lines = keys.filter((line) => line !== "").map((key) => `  - ${key}`);
  return lines.length === 0 ? [] : ["ssh_authorized_keys:", ...lines];
}

function networkData(main: Section): string {
  const nets = [...main].filter(([key]) => /^net\d+$/.test(key));
  const lines = ["version: 1", "config:"];
  for (const [key, text] of nets) {
    const number = key.slice("net".length);
    const mac = /=([0-9A-Fa-f:]{17})/.exec(text)?.[1] ?? "";
    const ipconfig = main.get(`ipconfig${number}`);
    lines.push("    - type: physical", `      name: eth${number}`);
    lines.push(`      mac_address: '${mac.toLowerCase()}'`, "      subnets:");
    lines.push(...subnets(ipconfig ?? "ip=dhcp"));
  }
  lines.push(...resolver(main));
  return `${lines.join("\n")}\n`;
}

function subnets(ipconfig: string): string[] {
  const parts = new Map(
    ipconfig.split(",").map((part): [string, string] => {
      const [name = "", value = ""] = part.split("=");
      return [name, value];
    }),
  );
  const ip = parts.get("ip");
  if (ip === undefined) return [];
  if (ip === "dhcp") return ["      - type: dhcp4"];
  const [address = "", bits = "24"] = ip.split("/");
  const gateway = parts.get("gw");
  return [
    "      - type: static",
    `        address: '${address}'`,
    `        netmask: '${netmaskOf(Number(bits))}'`,
    ...(gateway === undefined ? [] : [`        gateway: '${gateway}'`]),
  ];
}

function netmaskOf(bits: number): string {
  return [24, 16, 8, 0]
    .map((shift) => {
      const octetBits = Math.min(8, Math.max(0, bits - (24 - shift)));
      return 256 - 2 ** (8 - octetBits);
    })
    .join(".");
}

function resolver(main: Section): string[] {
  const server = main.get("nameserver");
  const domain = main.get("searchdomain");
  if (server === undefined && domain === undefined) return [];
  return [
    "    - type: nameserver",
    "      address:",
    ...(server?.split(/[\s,]+/) ?? []).map((each) => `      - '${each}'`),
    "      search:",
    ...(domain === undefined ? [] : [`      - '${domain}'`]),
  ];
}
