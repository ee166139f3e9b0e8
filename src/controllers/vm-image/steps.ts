import type { VMImage } from "../../api/index.ts";
import {
  knownFileOf,
  type Answer,
  type ImageFile,
  type Inventory,
} from "../../hypervisor/index.ts";
import type { FilePlace } from "../claims/index.ts";
import { defined } from "../failures/index.ts";
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

/**
 * The file of an image where it should be, if it is there. Whose it is, and whether it was
 * verified, only its Claim says.
 */
export async function findFile(
  connection: Connection,
  image: VMImage,
  target: Target,
): Promise<Answer<Copy | undefined>> {
  const { node, storage } = target;
  const found = await fileAt(connection, { ...fileOf(image), node, storage });
  if (!found.ok) return found;
  if (found.value === undefined) return { ok: true, value: undefined };
  const copy = { ...presentCopy(target, found.value), brought: false, verified: false };
  return { ok: true, value: copy };
}

/** What tells the file of an image from others on a storage. */
export function fileOf(image: VMImage): Pick<FilePlace, "name" | "content"> {
  return { name: fileNameOf(image), content: useOf(image) === "Disc" ? "ISO" : "Image" };
}

/** A file, as a node sees it. */
export async function fileAt(
  { driver }: Connection,
  { node, storage, content, name }: FilePlace & { readonly node: string },
): Promise<Answer<ImageFile | undefined>> {
  const place = { node, storage };
  const files = await (content === "ISO" ? driver.discs(place) : driver.images(place));
  if (!files.ok) return files;
  return { ok: true, value: files.value.find(({ fileName }) => fileName === name) };
}

function presentCopy(target: Target, file: ImageFile): Omit<Copy, "brought" | "verified"> {
  const { volume, fileName } = file;
  return defined<Omit<Copy, "brought" | "verified">>({
    ...placeOf(target),
    state: "Present",
    volume,
    fileName,
    ...knownFileOf(file),
  });
}
