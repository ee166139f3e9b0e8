import type { Cluster } from "../cluster.ts";
import type { GuestConfig } from "../config-file.ts";
import type { Volume } from "../state.ts";
import { findVolume } from "../storage/storages.ts";
import { drivesOf, isCloudinit } from "./drive.ts";

/** Options that are written on the cloud-init drive. */
const cloudinitOptions =
  /^(ci(custom|password|type|user|upgrade)|nameserver|searchdomain|sshkeys|name|ipconfig\d+|net\d+)$/;

/**
 * What the drive was made with, for options that changed since the machine was started: the old
 * value by option, or nothing for one that is new. A stopped machine's drive is made anew at start.
 */
export type Recorded = Readonly<Record<string, string | null>>;

export function recordedOf(cluster: Cluster, node: string, config: GuestConfig): Recorded {
  const text = volumeOf(cluster, node, config)?.data;
  // cast: only record() below writes what this volume holds.
  return text === undefined ? {} : (JSON.parse(text) as Recorded);
}

/** Notes down that the running machine's drive still has the old value. */
export function record(
  cluster: Cluster,
  { node, config, key }: { node: string; config: GuestConfig; key: string },
  change: { readonly old: string | undefined; readonly new: string | undefined },
): void {
  if (!cloudinitOptions.test(key) || change.old === change.new) return;
  const volume = volumeOf(cluster, node, config);
  if (volume === undefined) return;
  const { [key]: known, ...others } = recordedOf(cluster, node, config);
  const drives = known === undefined ? (change.old ?? null) : known;
  const isBack = drives === (change.new ?? null);
  const left = isBack ? others : { ...others, [key]: drives };
  if (Object.keys(left).length === 0) delete volume.data;
  else volume.data = JSON.stringify(left);
}

/** The drive is made anew: it holds what the config says. */
export function writeDrive(cluster: Cluster, node: string, config: GuestConfig): void {
  delete volumeOf(cluster, node, config)?.data;
}

function volumeOf(cluster: Cluster, node: string, config: GuestConfig): Volume | undefined {
  const drive = drivesOf(config.main).find(([, each]) => isCloudinit(each))?.[1];
  return drive === undefined ? undefined : findVolume(cluster, node, drive.file).volume;
}
