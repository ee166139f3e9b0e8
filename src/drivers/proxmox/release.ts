/** A version of Proxmox VE, as far as the driver has to tell them apart. */
export interface Release {
  readonly text: string;
  readonly major: number;
  readonly minor: number;
}

export const newestKnown: Release = { text: "9.2", major: 9, minor: 2 };

/** Disks by import-from came with qemu-server 7.1-5: Proxmox VE 7.2. Nothing older can create. */
const oldest = { major: 7, minor: 2 };

/** "8.4.21", "7.4-20". */
export function parseRelease(text: string): Release | undefined {
  const match = /^(\d+)\.(\d+)/.exec(text);
  if (match === null) return undefined;
  return { text, major: Number(match[1]), minor: Number(match[2]) };
}

export function isSupported(release: Release): boolean {
  return isAtLeast(release, oldest);
}

/** Content `import` with plain disk images: pve-storage 8.3.6 (2025-04), Proxmox VE 8.4. */
export function hasImportContent(release: Release): boolean {
  return isAtLeast(release, { major: 8, minor: 4 });
}

/**
 * Sys.AccessNetwork, which lets a node fetch from a URL, came with pve-storage 8.1.2 (2024-03):
 * Proxmox VE 8.2. Before, only who may change the node may let it do so.
 */
export function hasAccessNetwork(release: Release): boolean {
  return isAtLeast(release, { major: 8, minor: 2 });
}

/** The models x86-64-v2 and so on came with qemu-server 8.0. */
export function hasModel(release: Release, model: string): boolean {
  return release.major >= 8 || !model.startsWith("x86-64-v");
}

/** SDN.Use is asked for on bridges since Proxmox VE 8. */
export function needsSdnUse(release: Release): boolean {
  return release.major >= 8;
}

/** `ciupgrade` came with qemu-server 8.0. */
export function hasPackageUpgrade(release: Release): boolean {
  return release.major >= 8;
}

/** Resource mappings, by which PCI and USB devices are named on all nodes, came with 8.0. */
export function hasMappings(release: Release): boolean {
  return release.major >= 8;
}

/** Rules took the place of groups in Proxmox VE 9. */
export function hasRules(release: Release): boolean {
  return release.major >= 9;
}

function isAtLeast(release: Release, least: { major: number; minor: number }): boolean {
  if (release.major !== least.major) return release.major > least.major;
  return release.minor >= least.minor;
}
