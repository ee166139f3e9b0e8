import {
  answered,
  failed,
  fileDifference,
  isAsSeen,
  isSameFile,
  knownFileOf,
  provesFile,
} from "../../../hypervisor/index.ts";
import type { Answer, Begun, Fence, RemoveImage } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { readFailureOf } from "../errors.ts";
import { listVolumes, sightOf, type ListedVolume } from "../storages.ts";
import { fileNameOf } from "../translate/volumes.ts";
import { rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused, replaced } from "./begun.ts";

/** Removes a file that Berth brought, while nobody can be reading it. */
export async function removeImage(
  context: DriverContext,
  operation: RemoveImage,
  fence: Fence,
): Promise<Begun> {
  const { node, storage, fileName, use = "Disk" } = operation;
  if (!guard("remove-image-of-berth", provesFile(operation))) {
    const message = `no Claim proves that Berth brought ${fileName} to ${storage} on ${node}`;
    return refused({ category: "IdentityConflict", message });
  }
  // Before the list: what is being brought at this moment is not in it, and would come after it.
  const reader = await readerNow(context);
  if (!reader.ok) return refused(reader.failure);
  if (!guard("remove-image-no-reader", reader.value === undefined)) {
    return { outcome: "blocked", waitsFor: reader.value ?? "" };
  }
  const content = use === "Disc" ? "iso" : "import";
  const listed = await listVolumes(context.api, { node, storage }, { content });
  if (!listed.ok) return refused(listed.failure);
  const file = listed.value.find(({ volume }) => fileNameOf(volume) === fileName);
  if (file === undefined) return { outcome: "done" };
  const { volume } = file;
  const other = otherFile(operation, file);
  if (other !== undefined) return other;
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content/${pathPart(volume)}`;
  const result = await context.api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `remove the image ${fileName} from ${storage} on ${node}`);
}

/** Somebody put another file under the name of the one that was brought, or decided on. */
function otherFile({ fileClaim, node, seen }: RemoveImage, file: ListedVolume): Begun | undefined {
  const known = fileClaim.file ?? {};
  const there = knownFileOf(file);
  if (!guard("remove-image-as-claimed", isSameFile(known, there))) {
    const difference = fileDifference(known, there);
    const message = `the file ${file.volume} on ${node} was replaced: ${difference}`;
    return refused({ category: "IdentityConflict", message });
  }
  if (guard("remove-image-as-seen", isAsSeen(seen, sightOf(file)))) return undefined;
  return replaced(file.volume);
}

/** Work that may read an image or bring it. Its parameters cannot be seen, so any of it counts. */
const readers = new Set(["qmcreate", "qmconfig", "download", "imgcopy"]);

/** Such work that goes on anywhere in the cluster: a shared storage is read by every node. */
export async function readerNow({ api }: DriverContext): Promise<Answer<string | undefined>> {
  const result = await api.get("/cluster/tasks");
  if (result.type !== "data") return failed(readFailureOf(result, "list the work of the cluster"));
  const rows = rowsOf(result.data);
  const running = rows.find((row) => {
    return row["endtime"] === undefined && readers.has(textOf(row, "type"));
  });
  return answered(running === undefined ? undefined : textOf(running, "upid"));
}
