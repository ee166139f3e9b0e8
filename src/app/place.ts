import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { hostname } from "node:os";
import { namespaceResource } from "../api/builtin/index.ts";
import type { Client } from "../client/index.ts";
import type { Place } from "../controllers/index.ts";
import { ApiError } from "../kernel/status.ts";
import { readIfPresent } from "./files.ts";

/** systemd's id of a host, and where it is without systemd. Containers often have neither. */
const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/**
 * Where an embedded installation is: the host, and the folder by its inode, which a copy or a
 * restored backup does not share. The id of a host is not for others to read, so it is hashed.
 */
export function folderPlace(folder: string, files: readonly string[] = machineIdFiles): Place {
  const machineId = files.map((file) => readIfPresent(file)?.trim()).find((id) => id);
  const { ino } = statSync(folder, { bigint: true });
  const hash = createHash("sha256").update(`berth place\n${machineId ?? ""}\n${ino}`);
  return { id: `folder-${hash.digest("hex").slice(0, 32)}`, name: hostname() };
}

/** Where an installation on Kubernetes is: the cluster, which its first namespace tells apart. */
export async function clusterPlace(client: Client): Promise<Place | undefined> {
  try {
    const { metadata } = await client.of(namespaceResource).get({ name: "kube-system" });
    const { uid } = metadata;
    return uid === undefined ? undefined : { id: `cluster-${uid}`, name: hostname() };
  } catch (error) {
    // A role of an earlier version: then only the epoch tells two copies apart.
    if (error instanceof ApiError && (error.code === 403 || error.code === 404)) return undefined;
    throw error;
  }
}
