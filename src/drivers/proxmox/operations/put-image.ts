import { isSameFile, knownFileOf } from "../../../hypervisor/index.ts";
import type { Begun, Fence, PutImage } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { hasImportContent } from "../release.ts";
import { listVolumes, type ListedVolume } from "../storages.ts";
import { fileNameOf } from "../translate/volumes.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused, replaced } from "./begun.ts";
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
  const { node, storage, fileName: name, use = "Disk" } = operation;
  const release = context.release();
  if (use === "Disk" && !hasImportContent(release)) return refused(noImageFiles(release));
  const content = use === "Disc" ? "iso" : "import";
  const listed = await listVolumes(context.api, { node, storage }, { content });
  if (!listed.ok) return refused(listed.failure);
  const there = listed.value.find(({ volume }) => fileNameOf(volume) === name);
  const inTheWay = there && judge(operation, there);
  return inTheWay ?? send(context, { operation, content }, fence);
}

/** Undefined: only a part of ours is there, and is written over. */
function judge({ sizeBytes, knownFile }: PutImage, there: ListedVolume): Begun | undefined {
  if (!guard("put-image-absent", there.sizeBytes !== sizeBytes)) return { outcome: "done" };
  // Somebody may have put a file there since it was looked at.
  const isOurs = knownFile !== undefined && isSameFile(knownFile, knownFileOf(there));
  return guard("put-image-over-own-part", isOurs) ? undefined : replaced(there.volume);
}

async function send(
  { api }: DriverContext,
  { operation, content }: { readonly operation: PutImage; readonly content: string },
  fence: Fence,
): Promise<Begun> {
  const { node, storage, fileName: name, checksum, sizeBytes, chunks } = operation;
  const [algorithm = "", digest = ""] = checksum.split(":");
  const result = await api.write(
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
