import { answered } from "../../hypervisor/index.ts";
import type { Answer, ImageFile, ImagePlace } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { hasImportContent } from "./release.ts";
import { listVolumes, type ListedVolume } from "./storages.ts";
import { present } from "./translate/present.ts";
import { fileNameOf } from "./translate/volumes.ts";

/** Files that a disk can be filled from. An older server has no place for them. */
export async function findImages(
  { api, release, glance }: DriverContext,
  place: ImagePlace,
): Promise<Answer<readonly ImageFile[]>> {
  if (!hasImportContent(release())) return answered([]);
  const listed = await listVolumes(api, place, { content: "import" });
  if (!listed.ok) return listed;
  const files = listed.value.filter(({ content }) => content === "import");
  glance.saw(
    place.node,
    files.map(({ volume }) => volume),
  );
  glance.listed(place.node, files);
  return answered(files.map(imageFile));
}

/** Discs that a drive can hold. */
export async function findDiscs(
  { api }: DriverContext,
  place: ImagePlace,
): Promise<Answer<readonly ImageFile[]>> {
  const listed = await listVolumes(api, place, { content: "iso" });
  if (!listed.ok) return listed;
  const files = listed.value.filter(({ content }) => content === "iso");
  return answered(files.map(imageFile));
}

function imageFile({ volume, sizeBytes, createdMs }: ListedVolume): ImageFile {
  return { volume, fileName: fileNameOf(volume), sizeBytes, ...present({ createdMs }) };
}
