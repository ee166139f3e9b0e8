import type { ClaimSpec } from "../../api/index.ts";

/** A volume as it lies: a backing begins with its node, or with "shared". */
interface Lying {
  readonly backing: string;
  readonly name: string;
}

/**
 * Whether a Claim alone proves a volume to be Berth's when its machine is gone: it names the
 * volume, and the volume lies where the Claim's node sees it. On a storage that only its node sees,
 * the same name on another node is another volume, which may be anybody's.
 */
export function isProvable(
  { node, volumes = [] }: Pick<ClaimSpec, "node" | "volumes">,
  { backing, name }: Lying,
): boolean {
  const isNamed = volumes.some(({ id }) => id.endsWith(`:${name}`));
  return isNamed && (backing.startsWith("shared:") || backing.startsWith(`${node}:`));
}
