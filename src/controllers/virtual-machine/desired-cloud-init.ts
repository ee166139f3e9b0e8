import type { VirtualMachine } from "../../api/index.ts";
import type { CloudInitShape, GuestAddress } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";

type CloudInit = NonNullable<VirtualMachine["spec"]["cloudInit"]>;
type GuestNetwork = NonNullable<CloudInit["networks"]>[number];

interface Around {
  /** The password's hash, where a Secret holds it. */
  readonly passwordHash: string | undefined;
  /** Where its drive goes, if it does not say. */
  readonly storage: string | undefined;
  readonly isNew: boolean;
}

/** What the guest is told, as far as the hypervisor itself can tell it. */
export function cloudInitShape(
  cloudInit: CloudInit | undefined,
  around: Around,
): CloudInitShape | undefined {
  if (cloudInit === undefined) return undefined;
  const { user = {}, dns = {}, networks, storage, upgradePackages, datasource } = cloudInit;
  return defined<CloudInitShape>({
    storage: storage ?? around.storage,
    // A machine that stands may have been made before there was a word for what is usual.
    datasource: around.isNew || datasource !== "NoCloud" ? datasource : undefined,
    userName: user.name,
    passwordHash: user.passwordHash ?? around.passwordHash,
    sshKeys: user.sshAuthorizedKeys,
    upgradePackages,
    dnsServers: dns.servers,
    searchDomains: dns.searchDomains,
    addresses: networks?.map(guestAddress),
    files: filesOf(cloudInit),
  });
}

function filesOf({
  userData,
  vendorData,
  metaData,
  networkData,
}: CloudInit): CloudInitShape["files"] {
  const files = defined<NonNullable<CloudInitShape["files"]>>({
    userData: userData?.file,
    vendorData: vendorData?.file,
    metaData: metaData?.file,
    networkData: networkData?.file,
  });
  return Object.keys(files).length > 0 ? files : undefined;
}

function guestAddress({ name, ipv4, ipv6 }: GuestNetwork): GuestAddress {
  return defined<GuestAddress>({
    network: name,
    ipv4: ipv4 && addressOf(ipv4, "dhcp"),
    ipv6: ipv6 && addressOf(ipv6, ipv6.method === "Auto" ? "auto" : "dhcp"),
  });
}

function addressOf(
  { method, address, gateway }: { method: string; address?: string; gateway?: string },
  dynamic: string,
): { address: string; gateway?: string } | undefined {
  if (method === "None") return undefined;
  return defined<{ address: string; gateway?: string }>({
    address: method === "Static" ? address : dynamic,
    gateway,
  });
}
