import type { ClaimSpec } from "../../api/index.ts";

/**
 * Volumes that were asked for by name, and not there when their VM was released: the server may
 * still have been at it. What comes then is Berth's, though the VM is a person's.
 */
export function awaitedVolumes({ state, allocation, volumes = [] }: ClaimSpec): string[] {
  if (state !== "Released" || allocation === undefined) return [];
  const { volume, earlier = [] } = allocation;
  const all = volume === undefined ? earlier : [...earlier, volume];
  return all.filter((name) => !volumes.some(({ id }) => id === name));
}
