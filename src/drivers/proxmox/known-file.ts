import { fileDifference, isSameFile, knownFileOf } from "../../hypervisor/index.ts";
import type { Failure, KnownFile } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { listVolumes } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";

interface FilledFrom {
  readonly node: string;
  readonly volume: string;
  readonly known: KnownFile;
}

/**
 * What is wrong with the image file that a disk is to be filled from: it is gone, or somebody put
 * another one under its name. The list of a storage is read once for all disks that are filled in
 * the same seconds.
 */
export async function otherFile(
  context: DriverContext,
  { node, volume, known }: FilledFrom,
): Promise<Failure | undefined> {
  const { glance, api } = context;
  const storage = parseVolume(volume)?.storage ?? "";
  if (glance.fileOf(node, volume) === undefined) {
    const listed = await listVolumes(api, { node, storage }, { content: "import" });
    if (!listed.ok) return listed.failure;
    glance.listed(node, listed.value);
  }
  const there = glance.fileOf(node, volume);
  if (there === undefined) return gone(volume, node);
  const seen = knownFileOf(there);
  if (guard("fill-from-known-file", isSameFile(known, seen))) return undefined;
  return {
    category: "ImageNotFound",
    message: `the file ${volume} on ${node} was replaced: ${fileDifference(known, seen)}`,
    remedy: "Nothing is copied from it. See the status of the VMImage.",
  };
}

function gone(volume: string, node: string): Failure {
  return {
    category: "ImageNotFound",
    message: `${volume} is not on ${node}`,
    remedy: "Berth brings it again once it has noticed: see the status of the VMImage.",
  };
}
