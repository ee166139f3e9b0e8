import { answered } from "../../hypervisor/index.ts";
import type { Answer, ImageFile, ImagePlace } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { hasImportContent } from "./release.ts";
import { listVolumes } from "./storages.ts";
import { fileNameOf } from "./translate/volumes.ts";

/** Files that a disk can be filled from. An older server has no place for them. */
export async function findImages(
  { api, release }: DriverContext,
  place: ImagePlace,
): Promise<Answer<readonly ImageFile[]>> {
  if (!hasImportContent(release())) return answered([]);
  const listed = await listVolumes(api, place, { content: "import" });
  if (!listed.ok) return listed;
  const files = listed.value.filter(({ content }) => content === "import");
  return answered(
    files.map(({ volume, sizeBytes }) => ({ volume, fileName: fileNameOf(volume), sizeBytes })),
  );
}
