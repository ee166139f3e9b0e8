import type { VMImage } from "../../api/index.ts";
import type { Answer, ImageFile } from "../../hypervisor/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { fileNameOf, placeOf, useOf, type Copy, type Target } from "./plan.ts";

/** The copies of a volume or template: it is where it is. */
export async function findVolume(
  connection: Connection,
  volume: string,
): Promise<Answer<Copy | undefined>> {
  for (const row of connection.inventory.storages) {
    if (!row.contents.includes("Images") || !row.isUsable) continue;
    const files = await connection.driver.images({ node: row.node, storage: row.name });
    if (!files.ok) return files;
    const file = files.value.find((candidate) => candidate.volume === volume);
    const { name: hypervisor } = connection;
    const target = { hypervisor, storage: row.name, node: row.node, isShared: row.isShared };
    if (file)
      return { ok: true, value: { ...presentCopy(target, file), brought: false, verified: false } };
  }
  return { ok: true, value: undefined };
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
