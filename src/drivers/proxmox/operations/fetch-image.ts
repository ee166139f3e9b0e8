import type { Begun, Failure, Fence, FetchImage } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { hasImportContent, type Release } from "../release.ts";
import { listVolumes } from "../storages.ts";
import { fileNameOf } from "../translate/volumes.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";

/**
 * Lets the node download an image. The file gets its name only when it is whole and its checksum
 * was right (pve-storage, download_url), so a name that is there is a file that is complete.
 */
export async function fetchImage(
  context: DriverContext,
  operation: FetchImage,
  fence: Fence,
): Promise<Begun> {
  const { node, storage, url, fileName, checksum, use = "Disk" } = operation;
  const release = context.release();
  const content = use === "Disc" ? "iso" : "import";
  if (use === "Disk" && !hasImportContent(release)) {
    return refused(noImageFiles(release));
  }
  const present = await listVolumes(context.api, { node, storage }, { content });
  if (!present.ok) return refused(present.failure);
  const isThere = present.value.some(({ volume }) => fileNameOf(volume) === fileName);
  if (!guard("fetch-image-absent", !isThere)) return { outcome: "done" };
  const [algorithm = "", digest = ""] = checksum.split(":");
  const result = await context.api.write(
    "POST",
    {
      path: `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/download-url`,
      params: {
        content,
        filename: fileName,
        url,
        checksum: digest,
        "checksum-algorithm": algorithm,
      },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `fetch the image ${fileName} to ${storage} on ${node}`);
}

export function noImageFiles({ text }: Release): Failure {
  return {
    category: "APINotSupported",
    message: `Proxmox VE ${text} cannot bring in an image file by its API`,
    remedy: "Upgrade to 8.4, or make the machine by clone, or from a volume that is there.",
  };
}
