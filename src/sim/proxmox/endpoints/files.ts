import { createHash } from "node:crypto";
import { type Call, fork } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { qcow2Size } from "../fetcher.ts";
import { external, type Process, work } from "../process.ts";
import { parseVolumeName, pathOfVolume } from "../storage/names.ts";
import { findVolume, hasContent, usableStorage, volumesOf } from "../storage/storages.ts";
import type { StorageConfig, Volume } from "../state.ts";

const uploads: Readonly<Record<string, { pattern: RegExp; fault: string; folder: string }>> = {
  iso: { pattern: /\.(iso|img)$/i, fault: "wrong file extension", folder: "iso" },
  vztmpl: { pattern: /\.tar\.(gz|xz|zst|bz2)$/, fault: "wrong file extension", folder: "vztmpl" },
  import: {
    pattern: /^[A-Za-z0-9\-.+=_]+\.(ova|qcow2|raw|vmdk)$/,
    fault: "invalid filename or wrong extension",
    folder: "import",
  },
};

/** Where a file of a content goes: its volume's name. */
function targetOf({ cluster, node, parameters }: Call): {
  storage: StorageConfig;
  name: string;
  file: string;
} {
  const { content = "", filename = "" } = parameters;
  const storage = usableStorage(cluster, parameters["storage"] ?? "", node);
  const file = filename.replaceAll(/^.*[/\\]/g, "").replaceAll(/[^A-Za-z0-9\-.+=_]/g, "_");
  const rule = uploads[content];
  if (rule === undefined || !rule.pattern.test(file)) {
    throw parameterError({ filename: rule?.fault ?? "wrong file extension" });
  }
  if (!hasContent(storage, content)) {
    throw new PveError(`storage '${storage.storage}' does not support '${content}' content`);
  }
  return { storage, name: `${rule.folder}/${file}`, file };
}

/** What is known of a file's content. */
interface FileFacts {
  readonly sizeBytes: number;
  readonly sha256: string;
  readonly virtualBytes?: number | undefined;
}

function store(
  call: Call,
  target: { storage: StorageConfig; name: string },
  facts: FileFacts,
): Volume {
  const { cluster, node, parameters } = call;
  const { content = "" } = parameters;
  const { format } = parseVolumeName(target.storage, target.name);
  const volumes = volumesOf(cluster, target.storage, node);
  const volume: Volume = {
    name: target.name,
    content,
    format,
    sizeBytes: facts.sizeBytes,
    usedBytes: facts.sizeBytes,
    createdMs: cluster.clock.nowMs(),
    sha256: facts.sha256,
    data: `sha256:${facts.sha256}`,
    ...(facts.virtualBytes === undefined ? {} : { virtualBytes: facts.virtualBytes }),
  };
  const at = volumes.findIndex(({ name }) => name === target.name);
  if (at >= 0) volumes.splice(at, 1, volume);
  else volumes.push(volume);
  return volume;
}

/** POST …/upload: the file lies on the asked node first and is then copied onto its final name. */
export function* upload(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  if (call.upload === undefined)
    throw parameterError({ filename: "property is missing and it is not optional" });
  const { bytes } = call.upload;
  const target = targetOf(call);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const virtualBytes = qcow2SizeOf(target.name, bytes);
  const temporary = `/var/tmp/pveupload-${cluster.random.uuid().replaceAll("-", "")}`;
  yield* cluster.step("upload");
  return fork(call, { type: "imgcopy", id: "" }, function* (task) {
    task.log(`starting file import from: ${temporary}`);
    demandChecksum(task.log, parameters, sha256);
    if (virtualBytes === "broken") {
      throw new PveError(`qemu-img: Could not open '${temporary}': Image is not in qcow2 format`);
    }
    const path = pathOfVolume(target.storage, target.name);
    task.log(`target node: ${node}`);
    task.log(`target file: ${path}`);
    task.log(`file size is: ${bytes.length}`);
    task.log(`command: cp -- ${temporary} ${path}`);
    const volume = store(call, target, { sizeBytes: bytes.length, sha256, virtualBytes });
    // A crash in the middle of the copy leaves part of the file under its real name.
    const { sizeBytes } = volume;
    Object.assign(volume, { isPartial: true, sizeBytes: Math.floor(sizeBytes / 2) });
    yield* work("copy upload", cluster.slowStorageMs + cluster.timing.stepMs);
    volume.sizeBytes = sizeBytes;
    delete volume.isPartial;
    task.log("finished file import successfully");
  });
}

function qcow2SizeOf(name: string, bytes: Uint8Array): number | "broken" | undefined {
  if (!name.endsWith(".qcow2")) return undefined;
  return qcow2Size(bytes) ?? "broken";
}

function demandChecksum(
  log: (line: string) => void,
  parameters: Call["parameters"],
  sha256: string,
): void {
  const { checksum } = parameters;
  if (checksum === undefined) return;
  if (checksum.toLowerCase() !== sha256) {
    log("calculating checksum...");
    throw new PveError(`checksum mismatch: got '${sha256}' != expect '${checksum}'`);
  }
  log("calculating checksum...OK, checksum verified");
}

/** POST …/download-url: written beside, checked, then renamed: the final name means complete. */
export function* download(call: Call): Process<unknown> {
  const { cluster, parameters } = call;
  const { url = "" } = parameters;
  const target = targetOf(call);
  const path = pathOfVolume(target.storage, target.name);
  yield* cluster.step("download request");
  return fork(call, { type: "download", id: target.file }, function* (task) {
    task.log(`downloading ${url} to ${path}`);
    const { volume } = findVolume(cluster, call.node, `${target.storage.storage}:${target.name}`);
    if (volume !== undefined) {
      demandSameFile(task.log, {
        path,
        sha256: volume.sha256 ?? "",
        checksum: parameters["checksum"],
      });
      return;
    }
    const fetched = yield* external<Awaited<ReturnType<typeof cluster.fetch>>>("wget", (resume) => {
      void cluster.fetch(url).then(resume, () => resume({ kind: "unreachable" }));
    });
    if (fetched.kind !== "file") {
      throw new PveError(`download failed: exit code ${fetched.kind === "status" ? 8 : 4}`);
    }
    yield* work("download", cluster.slowStorageMs + cluster.timing.stepMs);
    demandChecksum(task.log, parameters, fetched.sha256);
    yield* cluster.step("rename");
    store(call, target, fetched);
    task.log(`download of '${url}' to '${path}' finished`);
  });
}

function demandSameFile(
  log: (line: string) => void,
  { path, sha256, checksum }: { path: string; sha256: string; checksum: string | undefined },
): void {
  if (checksum === undefined) throw new PveError(`refusing to override existing file '${path}'`);
  if (checksum.toLowerCase() !== sha256) {
    throw new PveError(`mismatch (got '${sha256}' != expect '${checksum}'), aborting`);
  }
  log("calculating checksum of existing file...OK, got correct file already, no need to download");
}

/** GET /nodes/{node}/query-url-metadata */
export function* queryUrl({ cluster, parameters }: Call): Process<unknown> {
  const { url = "" } = parameters;
  const fetched = yield* external<Awaited<ReturnType<typeof cluster.fetch>>>("HEAD", (resume) => {
    void cluster.fetch(url).then(resume, () => resume({ kind: "unreachable" }));
  });
  if (fetched.kind === "unreachable")
    throw new PveError(`invalid server response: '500 Can't connect'`);
  if (fetched.kind === "status") {
    throw new PveError(`invalid server response: '${fetched.status} ${fetched.reason}'`);
  }
  const filename = /([^/]+)$/.exec(url.split(/[?#]/)[0] ?? "")?.[1] ?? "";
  return { filename, mimetype: fetched.mimeType, size: fetched.sizeBytes };
}
