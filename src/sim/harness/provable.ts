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
  { node, volumes = [], allocation }: Pick<ClaimSpec, "node" | "volumes" | "allocation">,
  { backing, name }: Lying,
): boolean {
  const isShared = backing.startsWith("shared:");
  const isRecorded = volumes.some(({ id }) => id.endsWith(`:${name}`));
  if (isRecorded && (isShared || backing.startsWith(`${node}:`))) return true;
  const isChosen = chosenNames(allocation).some((id) => id.endsWith(`:${name}`));
  return isChosen && (isShared || backing.startsWith(`${allocation?.node}:`));
}

/** The volumes whose names Berth chose and wrote into the Claim before they were made. */
export function chosenNames(allocation: ClaimSpec["allocation"]): string[] {
  const { volume, earlier = [] } = allocation ?? {};
  return volume === undefined ? [...earlier] : [...earlier, volume];
}

/** A linked clone has the name of its base before its own. */
export function isNamed(id: string, name: string): boolean {
  return id.endsWith(`:${name}`) || id.endsWith(`/${name}`);
}
