import { BlockList, isIP } from "node:net";
import type { Answer, Failure } from "../../hypervisor/index.ts";

/** Files on the web, as far as images need them. The real one is in src/app. */
export interface Web {
  /** The addresses that a host's name leads to at this moment. */
  resolve(host: string): Promise<Answer<readonly string[]>>;
  /**
   * Opens a file. Only addresses that `mayUse` allows are ever connected to, also after redirects.
   * Whoever does not read it to its end closes it.
   */
  open(url: string, mayUse: (address: string) => boolean): Promise<Answer<WebFile>>;
}

export interface WebFile {
  readonly sizeBytes: number;
  readonly chunks: AsyncIterable<Uint8Array>;
  close(): void;
}

/** Networks that are not the Internet: what is there is for those who are inside (RFC 6890). */
const privateNetworks = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "224.0.0.0/3",
  "::/127",
  "64:ff9b::/96",
  "fc00::/7",
  "fe80::/10",
  "ff00::/8",
];

const inside = blockList(privateNetworks);

/** Whether a file may be fetched from an address: public, or in a network that is allowed. */
export function addressRule(allowed: readonly string[] = []): (address: string) => boolean {
  const exceptions = blockList(allowed);
  return (address) => {
    const plain = withoutMapping(address);
    const family = isIP(plain);
    if (family === 0) return false;
    const type = family === 6 ? "ipv6" : "ipv4";
    return exceptions.check(plain, type) || !inside.check(plain, type);
  };
}

/** The node resolves the name again later, and nobody can hold it to what was found here. */
export async function addressRefusal(
  web: Web,
  url: string,
  mayUse: (address: string) => boolean,
): Promise<Failure | undefined> {
  const { hostname } = new URL(url);
  const host = hostname.replaceAll(/^\[|\]$/g, "");
  const addresses =
    isIP(host) === 0 ? await web.resolve(host) : { ok: true as const, value: [host] };
  if (!addresses.ok) return addresses.failure;
  const refused = addresses.value.find((address) => !mayUse(address));
  return refused === undefined ? undefined : notAllowed(host, refused);
}

export function notAllowed(host: string, address: string): Failure {
  return {
    category: "PermissionDenied",
    message: `The URL leads to ${host}, which is the private address ${address}.`,
    remedy:
      "If that is meant, add its network to spec.privateImageNetworks of the Hypervisor. " +
      "Berth goes on by itself.",
  };
}

/** An IPv4 address in the clothes of IPv6 is still that address. */
function withoutMapping(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix = ""] = network.split("/");
    const family = isIP(address);
    const bits = Number(prefix);
    // What a person wrote wrongly allows nothing.
    if (family === 0 || bits > (family === 6 ? 128 : 32)) continue;
    list.addSubnet(address, bits, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}
