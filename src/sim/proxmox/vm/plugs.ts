import type { GuestConfig } from "../config-file.ts";
import { type Drive, isCdrom, parseDrive } from "./drive.ts";
import { memoryBytes } from "./hardware.ts";
import { parseDevice } from "./devices.ts";

/** What becomes of one change while the machine runs. */
export type Plug =
  | { readonly kind: "now" }
  /** The old device must go first. */
  | { readonly kind: "unplug" }
  /** It waits for the next start. */
  | { readonly kind: "later" }
  | { readonly kind: "refused"; readonly why: string };

export interface Running {
  readonly config: GuestConfig;
  /** What the option `hotplug` allows. */
  readonly features: ReadonlySet<string>;
}

const now: Plug = { kind: "now" };
const later: Plug = { kind: "later" };
const unplug: Plug = { kind: "unplug" };

function when(isPossible: boolean, plug: Plug = now): Plug {
  return isPossible ? plug : later;
}

type Rule = (running: Running, change: { key: string; old?: string; value: string }) => Plug;

interface Rules {
  readonly pattern: RegExp;
  readonly remove: Rule;
  readonly set: Rule;
}

const never: Rule = () => later;
const atOnce: Rule = () => now;

/** By option: what a running machine does when it is removed, and when it is set. */
const rules: readonly Rules[] = [
  {
    pattern: /^hotplug$/,
    remove: ({ config }) => when(!/cpu|memory/.test(config.main.get("hotplug") ?? "")),
    set: (_, { old, value }) => when(!/cpu|memory/.test(`${value},${old ?? ""}`)),
  },
  { pattern: /^tablet$/, remove: needs("usb"), set: needs("usb") },
  {
    pattern: /^usb\d+$/,
    remove: (running) => when(canPlugUsb(running)),
    set: (running) => when(canPlugUsb(running)),
  },
  {
    pattern: /^vcpus$/,
    remove: needs("cpu"),
    set: ({ config, features }, { value }) => {
      return features.has("cpu") ? vcpusChange(config, Number(value)) : later;
    },
  },
  {
    pattern: /^balloon$/,
    remove: ({ config }) => when(config.main.get("balloon") !== "0"),
    set: (_, { old, value }) => when((old !== "0") === (value !== "0")),
  },
  {
    pattern: /^net\d+$/,
    remove: ({ features }) => when(features.has("network"), unplug),
    set: ({ features }, { old, value }) => netChange(features.has("network"), old, value),
  },
  {
    pattern: /^((ide|sata|scsi|virtio)\d+|efidisk0|tpmstate0)$/,
    remove: ({ features }, { key }) => when(features.has("disk") && isPluggable(key), unplug),
    set: ({ features }, { key, old, value }) =>
      driveChange(features.has("disk"), key, { old, value }),
  },
  {
    pattern: /^memory$/,
    remove: needs("memory"),
    set: ({ config, features }, { value }) => {
      return features.has("memory") ? memoryChange(config, value) : later;
    },
  },
  { pattern: /^cpu(units|limit)$/, remove: atOnce, set: atOnce },
  {
    pattern: /^agent$/,
    remove: never,
    set: (_, { old, value }) => when(old !== undefined && agentParts(old) === agentParts(value)),
  },
];

function needs(feature: string): Rule {
  return ({ features }) => when(features.has(feature));
}

/** An option that is removed. */
export function removalOf(running: Running, key: string): Plug {
  const rule = rules.find(({ pattern }) => pattern.test(key))?.remove ?? never;
  return rule(running, { key, value: "" });
}

/** An option that is set. */
export function changeOf(running: Running, key: string): Plug {
  const { config } = running;
  const rule = rules.find(({ pattern }) => pattern.test(key))?.set ?? never;
  const old = config.main.get(key);
  const value = config.pending.get(key) ?? "";
  return rule(running, { key, value, ...(old === undefined ? {} : { old }) });
}

function isPluggable(key: string): boolean {
  return !/^(efidisk|ide|sata|tpmstate)\d+$/.test(key);
}

function canPlugUsb({ config, features }: Running): boolean {
  const ostype = config.main.get("ostype") ?? "";
  const windows = Number(/^win(\d+)$/.exec(ostype)?.[1] ?? "0");
  return features.has("usb") && (ostype === "l26" || windows > 7);
}

function vcpusChange({ main }: GuestConfig, wanted: number): Plug {
  const most = Number(main.get("sockets") ?? "1") * Number(main.get("cores") ?? "1");
  if (wanted <= most) return now;
  return { kind: "refused", why: "you can't add more vcpus than maxcpus" };
}

/** The memory that is there from the start, and never goes. */
const staticMib = 1_024;

function memoryChange(config: GuestConfig, value: string): Plug {
  const wantedMib = Number(value.replace(/^current=/, ""));
  if (wantedMib === memoryBytes(config) / 1024 ** 2) return now;
  if (wantedMib >= staticMib) return now;
  return { kind: "refused", why: `memory can't be lower than ${staticMib} MB` };
}

/** All but what can be changed under way. */
function agentParts(text: string): string {
  const parts = text.split(",").map((part) => (part.includes("=") ? part : `enabled=${part}`));
  return parts
    .filter((part) => !part.startsWith("fstrim_cloned_disks="))
    .sort()
    .join(",");
}

const models = /^(e1000[\w-]*|i8255\w+|ne2k_\w+|pcnet|rtl8139|virtio|vmxnet3)$/;

/** A card keeps its place if only its cable changes: bridge, tag, firewall, rate, link. */
function netChange(isAllowed: boolean, old: string | undefined, value: string): Plug {
  if (old === undefined) return when(isAllowed);
  const [before, after] = [parseDevice(old), parseDevice(value)];
  const fixed = (card: ReadonlyMap<string, string>): string => {
    const parts = [...card].filter(([name]) => models.test(name) || /^(queues|mtu)$/.test(name));
    return parts
      .map(([name, text]) => `${name}=${text.toLowerCase()}`)
      .sort()
      .join(",");
  };
  const isSame = fixed(before) === fixed(after) && before.has("bridge") && after.has("bridge");
  return isSame ? now : when(isAllowed, unplug);
}

const coldOptions = [
  "aio",
  "discard",
  "iothread",
  "queues",
  "product",
  "cache",
  "ssd",
  "vendor",
  "ro",
];

function driveChange(
  isAllowed: boolean,
  key: string,
  { old: oldText, value }: { readonly old: string | undefined; readonly value: string },
): Plug {
  if (key === "efidisk0" || key === "tpmstate0") return later;
  const drive = parseDrive(value);
  if (oldText === undefined) return when(isAllowed && isPluggable(key));
  const old = parseDrive(oldText);
  if (isCdrom(drive) !== isCdrom(old)) {
    return { kind: "refused", why: "unable to change media type" };
  }
  // A medium can be changed in any drive.
  if (isCdrom(old)) return now;
  if (drive.file === old.file) return when(!hasColdChange(old, drive));
  return when(isAllowed && isPluggable(key), unplug);
}

/** Limits of speed take effect at once, how a disk is opened does not. */
function hasColdChange(old: Drive, drive: Drive): boolean {
  return coldOptions.some((name) => old.options.get(name) !== drive.options.get(name));
}
