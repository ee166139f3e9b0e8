import type { Property } from "./schema.ts";

/**
 * Property strings that the schema names but does not spell out: their parts, as the documentation
 * of the options lists them.
 */
const named: Readonly<Record<string, Readonly<Record<string, Property>>>> = {
  "pve-qm-boot": {
    legacy: { t: "string", o: 1, k: 1, p: "[acdn]{1,4}" },
    order: { t: "string", o: 1 },
  },
  "pve-qm-ipconfig": {
    ip: { t: "string", o: 1, f: "pve-ipv4-config" },
    gw: { t: "string", o: 1, f: "ipv4", r: "ip" },
    ip6: { t: "string", o: 1, f: "pve-ipv6-config" },
    gw6: { t: "string", o: 1, f: "ipv6", r: "ip6" },
  },
  "pve-qm-smbios1": {
    uuid: { t: "string", o: 1, p: "[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}" },
    ...Object.fromEntries(
      ["version", "serial", "manufacturer", "product", "sku", "family"].map((name) => [
        name,
        { t: "string", o: 1, p: "[A-Za-z0-9+\\/]+={0,2}" } satisfies Property,
      ]),
    ),
    base64: { t: "boolean", o: 1 },
  },
  "pve-qm-cicustom": Object.fromEntries(
    ["meta", "network", "user", "vendor"].map((name) => [
      name,
      { t: "string", o: 1, f: "pve-volume-id" } satisfies Property,
    ]),
  ),
  "pve-qm-watchdog": {
    model: { t: "string", o: 1, k: 1, e: ["i6300esb", "ib700"] },
    action: {
      t: "string",
      o: 1,
      e: ["reset", "shutdown", "poweroff", "pause", "debug", "none"],
    },
  },
  "pve-qm-rng": {
    source: { t: "string", k: 1, e: ["/dev/urandom", "/dev/random", "/dev/hwrng"] },
    max_bytes: { t: "integer", o: 1 },
    period: { t: "integer", o: 1 },
  },
};

export function namedParts(name: string): Readonly<Record<string, Property>> | undefined {
  return named[name];
}
