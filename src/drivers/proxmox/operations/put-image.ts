import type { Begun, Fence, PutImage } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { hasImportContent } from "../release.ts";
import { listVolumes } from "../storages.ts";
import { fileNameOf } from "../translate/volumes.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";
import { noImageFiles } from "./fetch-image.ts";

/**
 * Uploads an image. The server checks the sum of what it received and then copies it onto its
 * final name, so a crash leaves part of it there: it is whole when its size is right.
 */
export async function putImage(
  context: DriverContext,
  operation: PutImage,
  fence: Fence,
): Promise<Begun> {
  const { node, storage, fileName: name, checksum, sizeBytes, chunks, use = "Disk" } = operation;
  const release = context.release();
  if (use === "Disk" && !hasImportContent(release)) return refused(noImageFiles(release));
  const content = use === "Disc" ? "iso" : "import";
  const listed = await listVolumes(context.api, { node, storage }, { content });
  if (!listed.ok) return refused(listed.failure);
  const there = listed.value.find(({ volume }) => fileNameOf(volume) === name);
  if (!guard("put-image-absent", there?.sizeBytes !== sizeBytes)) return { outcome: "done" };
  const [algorithm = "", digest = ""] = checksum.split(":");
  const result = await context.api.write(
    "POST",
    {
      path: `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/upload`,
      params: { content, checksum: digest, "checksum-algorithm": algorithm },
      file: { name, sizeBytes, chunks },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `upload the image ${name} to ${storage} on ${node}`);
}
