import type { VMImage } from "../../api/index.ts";
import type { Answer, ImageFile, Inventory } from "../../hypervisor/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { fileNameOf, placeOf, useOf, type Copy, type Target } from "./plan.ts";

/** Where a volume is: on a shared storage once, else on each node that has a file of that name. */
export async function findVolume(
  connection: Connection,
  volume: string,
): Promise<Answer<{ readonly copies: readonly Copy[]; readonly isWhole: boolean }>> {
  const copies = new Map<string, Copy>();
  let failure: Answer<never> | undefined;
  for (const row of imageStorages(connection.inventory)) {
    const files = await connection.driver.images({ node: row.node, storage: row.name });
    if (!files.ok) {
      failure ??= files;
      continue;
    }
    const file = files.value.find((candidate) => candidate.volume === volume);
    const { name: hypervisor } = connection;
    const target = { hypervisor, storage: row.name, node: row.node, isShared: row.isShared };
    if (file === undefined) continue;
    const copy = { ...presentCopy(target, file), brought: false, verified: false };
    copies.set(JSON.stringify(placeOf(target)), copy);
  }
  // What a node does not tell now is no reason to do without the others.
  if (failure !== undefined && copies.size === 0) return failure;
  return { ok: true, value: { copies: [...copies.values()], isWhole: failure === undefined } };
}

/** The storages that image files can lie on and that can be asked now. */
export function imageStorages({ storages }: Inventory): Inventory["storages"] {
  return storages.filter(({ contents, isUsable }) => isUsable && contents.includes("Images"));
}

/** The file of an image where it should be, if it is there. */
export async function findFile(
  connection: Connection,
  image: VMImage,
  target: Target,
): Promise<Answer<Copy | undefined>> {
  const { node, storage } = target;
  const place = { node, storage };
  const { driver } = connection;
  const isDisc = useOf(image) === "Disc";
  const files = await (isDisc ? driver.discs(place) : driver.images(place));
  if (!files.ok) return files;
  const fileName = fileNameOf(image);
  const file = files.value.find((candidate) => candidate.fileName === fileName);
  if (file === undefined) return { ok: true, value: undefined };
  // Only a name that carries the checksum says that Berth brought it, and that it was verified.
  const isOurs = image.spec.fileName === undefined;
  return { ok: true, value: { ...presentCopy(target, file), brought: isOurs, verified: isOurs } };
}

function presentCopy(target: Target, file: ImageFile): Omit<Copy, "brought" | "verified"> {
  const { hypervisor = "", storage = "", ...place } = placeOf(target);
  const { volume, sizeBytes, fileName } = file;
  const size = String(sizeBytes);
  return { hypervisor, storage, ...place, state: "Present", volume, fileName, size };
}

export function comingCopy(target: Target): Copy {
  const { hypervisor = "", storage = "", ...place } = placeOf(target);
  return { hypervisor, storage, ...place, state: "Downloading", brought: true, verified: false };
}
