import type { ProxmoxModel } from "../proxmox/index.ts";

/**
 * Whether a volume exists, itself or by a copy that took its place. What a hypervisor moves to
 * another node or storage is another volume there, and the same disk.
 */
export function livesOn(volume: object, { state, heirs }: ProxmoxModel["cluster"]): boolean {
  const existing = new Set<object>(Object.values(state.volumes).flat());
  for (let heir: object | undefined = volume; heir !== undefined; heir = heirs.get(heir)) {
    if (existing.has(heir)) return true;
  }
  return false;
}
