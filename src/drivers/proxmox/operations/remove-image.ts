import { answered, failed } from "../../../hypervisor/index.ts";
import type { Answer, Begun, Fence, RemoveImage } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { readFailureOf } from "../errors.ts";
import { listVolumes } from "../storages.ts";
import { fileNameOf } from "../translate/volumes.ts";
import { rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";

/** As many digits of the checksum as have to stand in the name for the file to be Berth's. */
const digitsLeast = 12;

/** Removes a file that Berth brought, while nobody can be reading it. */
export async function removeImage(
  context: DriverContext,
  operation: RemoveImage,
  fence: Fence,
): Promise<Begun> {
  const { node, storage, fileName, checksum, use = "Disk" } = operation;
  const digest = checksum.split(":")[1] ?? "";
  if (digest.length < digitsLeast || !fileName.includes(digest.slice(0, digitsLeast))) {
    const message = `${fileName} does not carry its checksum: Berth did not bring it`;
    return refused({ category: "IdentityConflict", message });
  }
  // Before the list: what is being brought at this moment is not in it, and would come after it.
  const reader = await readerNow(context);
  if (!reader.ok) return refused(reader.failure);
  if (reader.value !== undefined) return { outcome: "blocked", waitsFor: reader.value };
  const content = use === "Disc" ? "iso" : "import";
  const listed = await listVolumes(context.api, { node, storage }, { content });
  if (!listed.ok) return refused(listed.failure);
  const file = listed.value.find(({ volume }) => fileNameOf(volume) === fileName);
  if (file === undefined) return { outcome: "done" };
  const { volume } = file;
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content/${pathPart(volume)}`;
  const result = await context.api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `remove the image ${fileName} from ${storage} on ${node}`);
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
