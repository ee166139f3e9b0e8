import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { drivesOf, volumesOf } from "./references.ts";
import { nameWithoutStorage } from "./translate/volumes.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/**
 * The machine that refers to a volume, or to one of its name, among all that can be seen. A drive
 * that only goes with the next start is still in use.
 */
export async function userOf(
  context: DriverContext,
  volume: string,
): Promise<Answer<string | undefined>> {
  const name = nameWithoutStorage(volume);
  const list = await context.api.get("/cluster/resources", { type: "vm" });
  if (list.type !== "data") return failed(readFailureOf(list, "list the machines"));
  const rows = rowsOf(list.data);
  for (const row of rows.filter((candidate) => candidate["type"] === "qemu")) {
    const place = { node: textOf(row, "node"), externalId: textOf(row, "vmid") };
    const read = await context.configs.read(place);
    if (read.type === "failed") return failed(read.failure);
    if (read.type === "notHere") continue;
    const drives = [...drivesOf(read.config), ...read.config.pending.leavingDrives];
    const volumes = drives.flatMap(([, text]) => volumesOf(text));
    if (volumes.some((used) => nameWithoutStorage(used) === name)) {
      return answered(place.externalId);
    }
  }
  return answered(undefined);
}
