import { createHash } from "node:crypto";
import { isSameFile, isSeedOf, knownFileOf, provesFile } from "../../hypervisor/index.ts";
import type {
  Begun,
  FetchImage,
  PutImage,
  PutSeed,
  RemoveImage,
  RemoveSeed,
  SeenFile,
} from "../../hypervisor/index.ts";
import { isRunning } from "./model-identity.ts";
import {
  discVolume,
  done,
  gib,
  type ModelFile,
  type ModelState,
  type ModelTools,
  refused,
  referencesOf,
  replaced,
  userOf,
} from "./model-state.ts";

/** Files on a model's storages: images for disks, and discs. */

type FilePlace = Pick<FetchImage, "use" | "node" | "storage" | "fileName">;

export function fetchImage(tools: ModelTools, operation: FetchImage): Begun {
  if (findFile(tools.state, operation) !== undefined) return done;
  const effect = (): void => putFile(tools.state, operation, gib);
  return tools.task({ does: "Download", id: operation.fileName, effect });
}

/** It takes what comes and looks at its sum, as the hypervisor that it is. */
export async function putImage(tools: ModelTools, operation: PutImage): Promise<Begun> {
  const { state } = tools;
  const { chunks, checksum, sizeBytes, fileName } = operation;
  if (findFile(state, operation)?.sizeBytes === sizeBytes) return done;
  const [algorithm = "", digest = ""] = checksum.split(":");
  const hash = createHash(algorithm);
  for await (const chunk of chunks) hash.update(chunk);
  if (hash.digest("hex") !== digest) {
    return refused("CreationFailed", `${fileName} has another checksum.`);
  }
  const effect = (): void => putFile(state, operation, sizeBytes);
  return tools.task({ does: "Upload", id: fileName, effect });
}

/** While anything runs that may read or bring it, it stays. */
export function removeImage({ state }: ModelTools, operation: RemoveImage): Begun {
  const { fileName, node } = operation;
  if (!provesFile(operation)) {
    return refused("IdentityConflict", `No Claim proves that Berth brought ${fileName}.`);
  }
  const reader = state.tasks.find((task) => readers.has(task.does) && isRunning(task));
  if (reader !== undefined) return { outcome: "blocked", waitsFor: reader.handle };
  const file = findFile(state, operation);
  if (file !== undefined && !isSameFile(operation.fileClaim.file ?? {}, knownFileOf(file))) {
    return refused("IdentityConflict", `The file ${fileName} was replaced.`);
  }
  if (isReplaced(operation, file)) return replaced(fileName);
  if (file !== undefined) removeFile(state, file, node);
  return done;
}

const readers: ReadonlySet<string> = new Set(["Create", "Configure", "Download"]);

export function putSeed({ state }: ModelTools, operation: PutSeed): Begun {
  const { claim, fileName, content } = operation;
  if (!isSeedOf(claim.identity, fileName)) return notASeed(fileName);
  putFile(state, { ...operation, use: "Disc" }, content.length);
  return done;
}

export function removeSeed({ state }: ModelTools, operation: RemoveSeed): Begun {
  const { claim, node, storage, fileName, isStray = false } = operation;
  if (!isSeedOf(claim.identity, fileName)) return notASeed(fileName);
  const volume = discVolume(storage, fileName);
  const own = state.machines.get(claim.externalId);
  const holder = isStray ? userOf(state, volume) : own;
  if (holder !== undefined && referencesOf(holder).has(volume)) {
    return refused("DependencyNotReady", `VM ${holder.id} still holds ${fileName}.`);
  }
  const file = state.discs.get(volume);
  if (isReplaced(operation, file)) return replaced(volume);
  if (file !== undefined) removeFile(state, file, node);
  return done;
}

/** Another file has the name by now. It tells no times. */
function isReplaced({ seen }: { readonly seen?: SeenFile }, now: SeenFile | undefined): boolean {
  return seen !== undefined && now !== undefined && seen.sizeBytes !== now.sizeBytes;
}

function notASeed(fileName: string): Begun {
  return refused("IdentityConflict", `${fileName} is not the seed of this VM.`);
}

function findFile(state: ModelState, place: FilePlace): ModelFile | undefined {
  const file = filesFor(state, place).get(volumeOf(place));
  return file?.nodes.has(place.node) === true ? file : undefined;
}

function putFile(state: ModelState, place: FilePlace, sizeBytes: number): void {
  const volume = volumeOf(place);
  const nodes = new Set([...(filesFor(state, place).get(volume)?.nodes ?? []), place.node]);
  const { fileName } = place;
  filesFor(state, place).set(volume, { volume, fileName, sizeBytes, nodes });
}

function removeFile(state: ModelState, { volume, nodes }: ModelFile, node: string): void {
  nodes.delete(node);
  if (nodes.size > 0) return;
  state.images.delete(volume);
  state.discs.delete(volume);
}

function filesFor(state: ModelState, { use }: FilePlace): Map<string, ModelFile> {
  return use === "Disc" ? state.discs : state.images;
}

function volumeOf({ use, storage, fileName }: FilePlace): string {
  return use === "Disc" ? discVolume(storage, fileName) : `${storage}:import/${fileName}`;
}
