import type { Cluster } from "../cluster.ts";

const models =
  /^(e1000|e1000-82540em|e1000-82544gc|e1000-82545em|e1000e|i82551|i82557b|i82559er|ne2k_isa|ne2k_pci|pcnet|rtl8139|virtio|vmxnet3)$/;

/** A network card as it is stored: the model with its address first, the rest in order. */
function printNet(cluster: Cluster, text: string): string {
  let model = "";
  let address: string | undefined;
  const options = new Map<string, string>();
  for (const piece of text.split(",")) {
    if (piece.trim() === "") continue;
    const [name = "", value] = piece.split("=", 2);
    if (name === "model") model = value ?? "";
    else if (name === "macaddr") address = value;
    else if (models.test(name)) {
      model = name;
      address = value;
    } else options.set(name, value ?? "");
  }
  const rest = [...options.keys()].sort().map((name) => `${name}=${options.get(name) ?? ""}`);
  return [`${model}=${address ?? randomAddress(cluster)}`, ...rest].join(",");
}

/** A free address: under the project's own prefix since release 8, a local one before. */
export function randomAddress(cluster: Cluster): string {
  const bytes = [...cluster.random.bytes(6)];
  const { macPrefix } = cluster.quirks;
  const pairs = bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"));
  if (macPrefix !== undefined) return [macPrefix, ...pairs.slice(3)].join(":");
  const first = (((bytes[0] ?? 0) & 0xfc) | 0x02).toString(16).toUpperCase().padStart(2, "0");
  return [first, ...pairs.slice(1)].join(":");
}

/** The cards among some settings, each as it is stored. */
export function withAddresses(
  cluster: Cluster,
  settings: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).map(([key, text]) => {
      return [key, /^net\d+$/.test(key) ? printNet(cluster, text) : text];
    }),
  );
}
