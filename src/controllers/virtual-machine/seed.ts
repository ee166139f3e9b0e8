import { createHash } from "node:crypto";
import type { VirtualMachine } from "../../api/index.ts";
import { seedFileName } from "../../hypervisor/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { discImage, type DiscFile } from "./disc-image.ts";

type CloudInit = NonNullable<VirtualMachine["spec"]["cloudInit"]>;

/** The documents of the first boot that a person wrote, by what they are. */
export type SeedDocuments = Partial<
  Record<"userData" | "vendorData" | "metaData" | "networkData", string>
>;

/** Everything that goes onto a disc of our own, but for what only the machine knows. */
export interface Seed {
  /** The storage that the disc lies on. */
  readonly storage: string;
  readonly documents: SeedDocuments;
  readonly hostname: string;
  readonly passwordHash?: string | undefined;
  readonly cloudInit: CloudInit;
}

/** Whether the hypervisor's own fields cannot say it: then a disc of ours carries all of it. */
export function needsSeed({ spec, metadata }: VirtualMachine): boolean {
  const { cloudInit } = spec;
  if (cloudInit === undefined) return false;
  const name = spec.machineName ?? metadata.name;
  const isOtherName = cloudInit.hostname !== undefined && cloudInit.hostname !== name;
  return isOtherName || documentsOf(cloudInit).some((part) => part?.file === undefined);
}

/** Documents that are given, in any way. */
export function documentsOf({
  userData,
  vendorData,
  metaData,
  networkData,
}: CloudInit): readonly NonNullable<CloudInit["userData"]>[] {
  return [userData, vendorData, metaData, networkData].filter((part) => part !== undefined);
}

export interface SeedDisc {
  readonly storage: string;
  readonly fileName: string;
  readonly content: Uint8Array;
}

/** The disc for one machine: its name tells whose it is and what is on it. Pure. */
export function seedDisc(seed: Seed, identity: string, machine: Machine): SeedDisc {
  const content = discImage("cidata", filesOf(seed, identity, machine));
  const sha256 = createHash("sha256").update(content).digest("hex");
  return { storage: seed.storage, fileName: seedFileName(identity, sha256), content };
}

function filesOf(seed: Seed, identity: string, machine: Machine): DiscFile[] {
  const { documents, hostname } = seed;
  const metaData =
    documents.metaData ?? yaml({ "instance-id": identity, "local-hostname": hostname });
  const network = documents.networkData ?? networkConfig(seed, machine);
  const files: Record<string, string | undefined> = {
    "user-data": userDataOf(seed),
    "meta-data": metaData,
    "vendor-data": documents.vendorData,
    "network-config": network,
  };
  return Object.entries(files).flatMap(([name, text]) => {
    return text === undefined ? [] : [{ name, content: Buffer.from(text) }];
  });
}

/** JSON is YAML, and needs no quoting rules of its own. */
function yaml(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

const boundary = "berth-first-boot";

/** What the object says by fields comes first, so that the person's own document overrules it. */
function userDataOf({ documents, cloudInit, passwordHash }: Seed): string {
  const fields = accountOf(cloudInit, passwordHash);
  const own = `#cloud-config\n${yaml(fields)}`;
  if (documents.userData === undefined) return own;
  if (Object.keys(fields).length === 0) return documents.userData;
  const parts = [own, documents.userData].map((text) => {
    const type = `Content-Type: ${typeOf(text)}; charset="utf-8"`;
    return `--${boundary}\n${type}\nMIME-Version: 1.0\n\n${text}`;
  });
  const head = `Content-Type: multipart/mixed; boundary="${boundary}"\nMIME-Version: 1.0\n`;
  return `${head}\n${parts.join("\n")}\n--${boundary}--\n`;
}

function typeOf(text: string): string {
  if (text.startsWith("#!")) return "text/x-shellscript";
  return text.startsWith("#include") ? "text/x-include-url" : "text/cloud-config";
}

function accountOf({ user, upgradePackages }: CloudInit, passwordHash: string | undefined): object {
  const { name, sshAuthorizedKeys } = user ?? {};
  const password = user?.passwordHash ?? passwordHash;
  return {
    ...(name === undefined ? {} : { user: name }),
    ...(sshAuthorizedKeys === undefined ? {} : { ssh_authorized_keys: sshAuthorizedKeys }),
    ...(password === undefined ? {} : { password, chpasswd: { expire: false } }),
    ...(upgradePackages === undefined ? {} : { package_upgrade: upgradePackages }),
  };
}

/** Cards are told by their hardware addresses, which the machine has by now. */
function networkConfig({ cloudInit }: Seed, machine: Machine): string | undefined {
  const { networks = [], dns } = cloudInit;
  if (networks.length === 0) return undefined;
  const nameservers = {
    ...(dns?.servers === undefined ? {} : { addresses: dns.servers }),
    ...(dns?.searchDomains === undefined ? {} : { search: dns.searchDomains }),
  };
  const ethernets = networks.map((card) => {
    const seen = machine.networks.find(({ name }) => name === card.name);
    const match = { macaddress: seen?.macAddress ?? "" };
    const told = Object.keys(nameservers).length > 0 ? { nameservers } : {};
    return [card.name, { match, ...addressesOf(card), ...told }] as const;
  });
  return yaml({ version: 2, ethernets: Object.fromEntries(ethernets) });
}

type GuestNetwork = NonNullable<CloudInit["networks"]>[number];

function addressesOf({ ipv4, ipv6 }: GuestNetwork): object {
  const fixed = [ipv4?.address, ipv6?.address].filter((address) => address !== undefined);
  const gateways = [
    { to: "0.0.0.0/0", via: ipv4?.gateway },
    { to: "::/0", via: ipv6?.gateway },
  ].filter(({ via }) => via !== undefined);
  return {
    dhcp4: ipv4?.method === "DHCP",
    dhcp6: ipv6?.method === "DHCP",
    ...(ipv6 === undefined ? {} : { "accept-ra": ipv6.method === "Auto" }),
    ...(fixed.length > 0 ? { addresses: fixed } : {}),
    ...(gateways.length > 0 ? { routes: gateways } : {}),
  };
}
