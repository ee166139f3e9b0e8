import type { GuestConfig } from "../config-file.ts";
import type { Process } from "../process.ts";
import { type Applier, applyOption, dropOption, write } from "./apply.ts";

/** Options that concern no running hardware. */
const always =
  /^(lock|name|onboot|shares|startup|description|protection|vmstatestorage|hookscript|tags|autostart|ci\w+|sshkeys|nameserver|searchdomain|ipconfig\d+)$/;

/** What the feature "network,disk,usb", the default, covers. */
const features: readonly { feature: string; pattern: RegExp }[] = [
  { feature: "disk", pattern: /^(scsi|virtio)\d+$/ },
  { feature: "network", pattern: /^net\d+$/ },
  { feature: "usb", pattern: /^usb\d+$/ },
  { feature: "memory", pattern: /^memory$/ },
  { feature: "cpu", pattern: /^(vcpus|cpulimit|cpuunits)$/ },
];

/** Applies what a running machine can take; the rest waits until it is started anew. */
export function* hotplug(applier: Applier, config: GuestConfig): Process<void> {
  const enabled = featuresOf(config);
  for (const [key, { isForced }] of config.pendingDelete) {
    if (!canPlug(enabled, key)) continue;
    yield* dropOption(applier, config, { key, isForced });
    config.pendingDelete.delete(key);
  }
  for (const [key, value] of config.pending) {
    if (config.main.get(key) === value) config.pending.delete(key);
    else if (canPlug(enabled, key) || isSameCdrom(config, key)) {
      yield* applyOption(applier, config, key);
    }
  }
  write(applier, config);
}

function featuresOf(config: GuestConfig): Set<string> {
  const text = config.main.get("hotplug") ?? "network,disk,usb";
  if (text === "0") return new Set();
  return new Set((text === "1" ? "network,disk,usb" : text).split(","));
}

function canPlug(enabled: ReadonlySet<string>, key: string): boolean {
  if (always.test(key)) return true;
  return features.some(({ feature, pattern }) => pattern.test(key) && enabled.has(feature));
}

/** A medium can be changed in any drive. */
function isSameCdrom(config: GuestConfig, key: string): boolean {
  const isMedium = (text: string | undefined): boolean => /,media=cdrom/.test(`,${text ?? ""}`);
  return isMedium(config.main.get(key)) && isMedium(config.pending.get(key));
}
