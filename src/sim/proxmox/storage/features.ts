import type { StorageConfig, Volume } from "../state.ts";
import { isFileBased, parseVolumeName } from "./names.ts";

/** What can be done with a volume: by its storage, its format, and whether it is a base. */
export type Feature = "snapshot" | "clone" | "copy" | "template" | "rename";

type Of = "base" | "current" | "snap";

/** Block storages, by what the feature is asked of. */
const devices: Readonly<Record<string, Readonly<Partial<Record<Feature, readonly Of[]>>>>> = {
  zfspool: {
    snapshot: ["current", "snap"],
    clone: ["base"],
    template: ["current"],
    copy: ["base", "current"],
    rename: ["current"],
  },
  lvmthin: {
    snapshot: ["current"],
    clone: ["base", "snap"],
    template: ["current"],
    copy: ["base", "current", "snap"],
    rename: ["current"],
  },
  rbd: {
    snapshot: ["current", "snap"],
    clone: ["base", "snap"],
    template: ["current"],
    copy: ["base", "current", "snap"],
    rename: ["current"],
  },
  lvm: { copy: ["base", "current"], rename: ["current"] },
};

/** Whether a volume, or a snapshot of it, can be used so. */
export function hasFeature(
  storage: StorageConfig,
  volume: Volume,
  { feature, snapshot }: { readonly feature: Feature; readonly snapshot?: string | undefined },
): boolean {
  const { isBase } = parseVolumeName(storage, volume.name);
  const current = isBase ? "base" : "current";
  const of: Of = snapshot === undefined ? current : "snap";
  if (!isFileBased(storage)) return devices[storage.type]?.[feature]?.includes(of) === true;
  switch (feature) {
    case "snapshot":
      return of !== "base" && volume.format === "qcow2";
    case "clone":
      return of === "base";
    case "copy":
      return of !== "snap" || volume.format === "qcow2";
    case "template":
    case "rename":
      return of === "current";
  }
}
