import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { WholeConfig } from "./config-reader.ts";
import type { DriverContext } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { drivesOf, referencedVolumes, volumesOf } from "./references.ts";
import { nameWithoutStorage } from "./translate/volumes.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/**
 * The machine that refers to a volume, or to one of its name, among all that can be seen. A drive
 * that only goes with the next start is still in use; so is one that a snapshot knows, where that
 * is asked for, at the price of a call for every machine.
 */
export async function userOf(
  context: DriverContext,
  volume: string,
  { withSnapshots = false }: { readonly withSnapshots?: boolean } = {},
): Promise<Answer<string | undefined>> {
  const name = nameWithoutStorage(volume);
  const list = await context.api.get("/cluster/resources", { type: "vm" });
  if (list.type !== "data") return failed(readFailureOf(list, "list the machines"));
  const rows = rowsOf(list.data);
  for (const row of rows.filter((candidate) => candidate["type"] === "qemu")) {
    const place = { node: textOf(row, "node"), externalId: textOf(row, "vmid") };
    const read = await context.configs.read(place);
    if (read.type === "failed") return failed(read.failure);
    if (read.type === "notHere") return failed(moved(place.externalId, volume));
    const { config } = read;
    const volumes = withSnapshots
      ? await referencedVolumes(context.api, place, config)
      : answered(volumesNow(config));
    if (!volumes.ok) return volumes;
    const isUsed = [...volumes.value].some((used) => nameWithoutStorage(used) === name);
    if (!guard("volume-not-referenced", !isUsed)) {
      return answered(place.externalId);
    }
  }
  return answered(undefined);
}

/** It was listed a moment ago: it went, or it is on its way to another node with all its drives. */
function moved(externalId: string, volume: string): Failure {
  const message = `VM ${externalId} moved or went while it was asked whether it uses ${volume}`;
  return { category: "UnknownOutcome", message };
}

function volumesNow(config: WholeConfig): readonly string[] {
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  return drives.flatMap(([, text]) => volumesOf(text));
}
