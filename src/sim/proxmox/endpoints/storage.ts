import { createHash } from "node:crypto";
import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import {
  hasContent,
  isOnNode,
  isReachable,
  isShared,
  spaceOf,
  storageConfig,
} from "../storage/storages.ts";
import { splitList } from "../schema/formats.ts";
import type { StorageConfig } from "../state.ts";
import { allocateVolume, deleteVolume, listContent, readVolume } from "./content.ts";
import { download, queryUrl, upload } from "./files.ts";
import { storageIndex } from "./indexes.ts";

const auditors = { privileges: ["Datastore.Audit", "Datastore.AllocateSpace"], isAny: true };

/** GET /nodes/{node}/storage */
function listStorages(call: Call): unknown {
  const { cluster, caller, node, parameters } = call;
  const { content, storage: asked, enabled } = parameters;
  if (asked !== undefined && !cluster.state.storages.some(({ storage }) => storage === asked)) {
    throw parameterError({ storage: "No such storage." });
  }
  return cluster.state.storages
    .filter(({ storage }) => asked === undefined || storage === asked)
    .filter((storage) => isOnNode(storage, node))
    .filter(({ disable }) => !isSet(enabled) || disable !== 1)
    .filter(
      (storage) =>
        content === undefined || splitList(content).some((each) => hasContent(storage, each)),
    )
    .filter(({ storage }) => cluster.rights.may(caller, `/storage/${storage}`, auditors))
    .map((storage) => ({
      storage: storage.storage,
      ...statusOf(call, storage),
      used_fraction: fraction(call, storage),
    }));
}

function fraction({ cluster, node }: Call, storage: StorageConfig): number {
  const { usedBytes, totalBytes } = spaceOf(cluster, storage, node);
  return usedBytes / totalBytes;
}

/** One that cannot be reached has no size either. */
function statusOf({ cluster, node }: Call, storage: StorageConfig): object {
  const isEnabled = storage.disable !== 1;
  const isActive = isEnabled && isReachable(cluster, storage, node);
  const { usedBytes, totalBytes } = isActive
    ? spaceOf(cluster, storage, node)
    : { usedBytes: 0, totalBytes: 0 };
  return {
    type: storage.type,
    content: storage.content,
    shared: isShared(storage) ? 1 : 0,
    enabled: isEnabled ? 1 : 0,
    active: isActive ? 1 : 0,
    total: totalBytes,
    used: usedBytes,
    avail: Math.max(0, totalBytes - usedBytes),
  };
}

function storageStatus(call: Call): unknown {
  const { cluster, parameters, node } = call;
  const found = cluster.state.storages.find(({ storage }) => storage === parameters["storage"]);
  if (found === undefined || !isOnNode(found, node))
    throw parameterError({ storage: "No such storage." });
  return statusOf(call, found);
}

// The configuration of storages.

function digestOf({ cluster }: Call): string {
  return createHash("sha1").update(JSON.stringify(cluster.state.storages)).digest("hex");
}

function createStorage(call: Call): unknown {
  const { cluster, parameters } = call;
  const { storage = "", type = "" } = parameters;
  if (cluster.state.storages.some((each) => each.storage === storage)) {
    throw new PveError(`create storage failed: storage ID '${storage}' already defined`);
  }
  const texts = [
    "path",
    "pool",
    "vgname",
    "thinpool",
    "server",
    "export",
    "nodes",
    "format",
    "preallocation",
  ] as const;
  const config: StorageConfig = {
    storage,
    type,
    content: parameters["content"] ?? "images,rootdir",
  };
  for (const name of texts) {
    const value = parameters[name];
    if (value !== undefined) config[name] = value;
  }
  for (const name of ["shared", "disable"] as const) {
    if (isSet(parameters[name])) config[name] = 1;
  }
  cluster.state.storages.push(config);
  return { storage, type };
}

function changeStorage(call: Call): unknown {
  const { cluster, parameters } = call;
  const config = storageConfig(cluster, parameters["storage"] ?? "");
  if (parameters["content"] !== undefined) config.content = parameters["content"];
  if (parameters["nodes"] !== undefined) config.nodes = parameters["nodes"];
  if (parameters["disable"] !== undefined) config.disable = isSet(parameters["disable"]) ? 1 : 0;
  return { storage: config.storage, type: config.type };
}

function deleteStorage({ cluster, parameters }: Call): unknown {
  const config = storageConfig(cluster, parameters["storage"] ?? "");
  cluster.state.storages = cluster.state.storages.filter((each) => each !== config);
  return null;
}

export const storageEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /storage": immediate((call) =>
    call.cluster.state.storages
      .filter(({ storage }) =>
        call.cluster.rights.may(call.caller, `/storage/${storage}`, auditors),
      )
      .map((storage) => ({ ...storage, digest: digestOf(call) })),
  ),
  "POST /storage": immediate(createStorage),
  "GET /storage/{storage}": immediate((call) => {
    return {
      ...storageConfig(call.cluster, call.parameters["storage"] ?? ""),
      digest: digestOf(call),
    };
  }),
  "PUT /storage/{storage}": immediate(changeStorage),
  "DELETE /storage/{storage}": immediate(deleteStorage),
  "GET /nodes/{node}/storage": immediate(listStorages),
  "GET /nodes/{node}/storage/{storage}": immediate(({ cluster }) =>
    storageIndex(cluster.state.release).map((subdir) => ({ subdir })),
  ),
  "GET /nodes/{node}/storage/{storage}/status": immediate(storageStatus),
  "GET /nodes/{node}/storage/{storage}/content": immediate(listContent),
  "POST /nodes/{node}/storage/{storage}/content": allocateVolume,
  "GET /nodes/{node}/storage/{storage}/content/{volume}": immediate(readVolume),
  "DELETE /nodes/{node}/storage/{storage}/content/{volume}": deleteVolume,
  "POST /nodes/{node}/storage/{storage}/upload": upload,
  "POST /nodes/{node}/storage/{storage}/download-url": download,
  "GET /nodes/{node}/query-url-metadata": queryUrl,
};
