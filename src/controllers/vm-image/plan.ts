import type { VirtualMachine, VMImage, VMImageStatus } from "../../api/index.ts";
import type { Failure, Inventory, StorageContent } from "../../hypervisor/index.ts";

export type Copy = NonNullable<VMImageStatus["copies"]>[number];

/** Where an image is needed. */
export interface Target {
  readonly hypervisor: string;
  readonly storage: string;
  readonly node: string;
  /** All nodes see the same file. */
  readonly isShared: boolean;
}

/** A hypervisor as far as it matters to images. */
export interface ImageHost {
  readonly name: string;
  readonly imageStorage?: string | undefined;
  readonly inventory: Inventory;
}

/** Where the file has to be: for machines to be made, and where a person wants it. */
export function planTargets(
  image: VMImage,
  vms: readonly VirtualMachine[],
  hosts: readonly ImageHost[],
): Target[] {
  const wishes = [...wishesOf(image), ...vms.flatMap(wishOf)];
  const targets = wishes.flatMap(({ hypervisor, storage, node }) => {
    const host = hosts.find(({ name }) => name === hypervisor);
    const content = useOf(image) === "Disc" ? "ISOs" : "Images";
    return host === undefined ? [] : targetOn(host, { content, storage, node }, copiesOf(image));
  });
  return [...new Map(targets.map((target) => [JSON.stringify(placeOf(target)), target])).values()];
}

/** Places where it is needed and where nothing can take it: what is wrong, and what remains. */
export function unmetWishes(
  image: VMImage,
  vms: readonly VirtualMachine[],
  hosts: readonly ImageHost[],
): Failure[] {
  const content = useOf(image) === "Disc" ? "ISOs" : "Images";
  return [...wishesOf(image), ...vms.flatMap(wishOf)].flatMap(({ hypervisor, storage, node }) => {
    const host = hosts.find(({ name }) => name === hypervisor);
    if (host === undefined || !host.inventory.isComplete) return [];
    const isMet = targetOn(host, { content, storage, node }).length > 0;
    return isMet ? [] : [noPlace(image, { hypervisor, storage, node })];
  });
}

/** The hypervisors that need it: for VMs to be made, and where a person wants it. */
export function wantedOn(image: VMImage, vms: readonly VirtualMachine[]): string[] {
  const wishes = [...wishesOf(image), ...vms.flatMap(wishOf)];
  return [...new Set(wishes.map(({ hypervisor }) => hypervisor))];
}

function noPlace(image: VMImage, { hypervisor, storage, node }: Wish): Failure {
  const what = useOf(image) === "Disc" ? "discs" : "image files";
  const where = storage === undefined ? "No storage" : `The storage ${storage}`;
  const at = node === undefined ? "" : ` on the node ${node}`;
  const verb = storage === undefined ? "takes" : "does not take";
  return {
    category: "DependencyNotReady",
    message: `${where} of the Hypervisor ${hypervisor}${at} ${verb} ${what}. Nothing was brought.`,
    remedy:
      `Let one take ${what}, if this version of the hypervisor can; or make the machine by ` +
      "spec.source.clone from a template or another machine, or by spec.source.importedDisk or a " +
      "VMImage with source.volume from a volume that is there.",
  };
}

interface Wish {
  readonly hypervisor: string;
  readonly storage?: string | undefined;
  readonly node?: string | undefined;
}

/** The images that a machine comes from, by their keys. */
export function imagesWanted({ metadata, spec }: VirtualMachine): string[] {
  const { image, clone } = spec.source ?? {};
  const discs = (spec.cdroms ?? []).map(({ imageRef }) => imageRef?.name);
  const wanted = [image?.name, clone?.imageRef?.name, ...discs];
  const names = wanted.filter((name) => name !== undefined);
  return names.map((name) => `${metadata.namespace ?? ""}/${name}`);
}

/** All of a VM that matters to its images: a new status wakes them only if this changes. */
export function wishesFor(vm: VirtualMachine): readonly unknown[] {
  return [wishOf(vm), missingAt(vm)];
}

/**
 * What VMs report about the file at a place: they did not find it, or found another one. Empty: no
 * VM does. Another text is another report.
 */
export function missingReports(
  vms: readonly VirtualMachine[],
  place: Pick<CopyPlace, "hypervisor" | "node">,
): string {
  const reports = vms.filter(({ spec, status }) => {
    const isThere = spec.hypervisorRef.name === place.hypervisor;
    const { node = place.node } = status ?? {};
    return isThere && (place.node === undefined || node === place.node);
  });
  return reports
    .flatMap((vm) => missingAt(vm) ?? [])
    .toSorted()
    .join("\n");
}

function missingAt({ metadata, status }: VirtualMachine): string | undefined {
  const { failure } = status ?? {};
  if (failure?.category !== "ImageNotFound") return undefined;
  return [metadata.uid, failure.attempts, failure.firstAt, failure.lastAt].join(" ");
}

/**
 * Whether a VM or the spec may need the file at a place, and has it at no other one. This holds
 * also for a place that cannot be used now, which is no target.
 */
export function mayBeNeeded(
  image: VMImage,
  vms: readonly VirtualMachine[],
  place: CopyPlace,
): boolean {
  const present = copiesOf(image).filter(({ state }) => state === "Present");
  return [...wishesOf(image), ...vms.flatMap(wishOf)].some((wish) => {
    return isMeant(wish, place) && !present.some((copy) => isMeant(wish, copy));
  });
}

function isMeant({ hypervisor, storage, node }: Wish, place: CopyPlace): boolean {
  const isOnStorage = storage === undefined || storage === place.storage;
  const isOnNode = node === undefined || place.node === undefined || node === place.node;
  return hypervisor === place.hypervisor && isOnStorage && isOnNode;
}

/** A VM whose place is known and whose disks have still to be created, or that has CD-ROMs. */
function wishOf(vm: VirtualMachine): Wish[] {
  const { spec, status } = vm;
  const hasDiscs = spec.cdroms?.some(({ imageRef }) => imageRef !== undefined) ?? false;
  if (status?.node === undefined || !(hasDiscs || lacksDisk(vm))) return [];
  return isLeaving(vm) ? [] : [{ hypervisor: spec.hypervisorRef.name, node: status.node }];
}

/** It has no disks, yet or any more, or not the one that an image fills: it may be recreated. */
function lacksDisk({ spec, status }: VirtualMachine): boolean {
  const { disks = [] } = status ?? {};
  const filled = spec.disks?.find(({ name }) => name === spec.source?.image?.disk);
  return (
    disks.length === 0 || (filled !== undefined && !disks.some(({ name }) => name === filled.name))
  );
}

/** It is deleted, or gone and not recreated: nothing is created from an image any more. */
function isLeaving({ metadata, spec, status }: VirtualMachine): boolean {
  if (metadata.deletionTimestamp !== undefined) return true;
  return status?.failure?.category === "Missing" && spec.onMissing !== "Recreate";
}

function wishesOf({ spec }: VMImage): Wish[] {
  return (spec.prefetch ?? []).flatMap(({ hypervisor, storages }) => {
    return (storages ?? [undefined]).map((storage) => ({ hypervisor, storage }));
  });
}

/** Where any place will do, one that has the file already, or will, is as good as any other. */
function targetOn(
  { name: hypervisor, imageStorage, inventory }: ImageHost,
  { content, storage: wanted, node }: Omit<Wish, "hypervisor"> & { content: StorageContent },
  copies: readonly Copy[] = [],
): Target[] {
  const takesIt = inventory.storages.filter(({ contents }) => contents.includes(content));
  // The default for images need not take discs.
  const isDefault = takesIt.some(({ name }) => name === imageStorage);
  const storage = wanted ?? (isDefault ? imageStorage : undefined);
  const rows = takesIt.filter((candidate) => {
    const takes = candidate.isUsable;
    const isNamed = storage === undefined || candidate.name === storage;
    return takes && isNamed && (node === undefined || candidate.node === node);
  });
  const targets = rows.map((row) => ({
    hypervisor,
    storage: row.name,
    node: row.node,
    isShared: row.isShared,
  }));
  // What is Missing and has a Claim was brought, and was not looked for since the status was lost.
  const states = ["Present", "Downloading", "Missing"] as const;
  const started = states.flatMap((state) => {
    const places = copies
      .filter((copy) => copy.state === state && (state !== "Missing" || copy.claim !== undefined))
      .map(placeOfCopy)
      .map(placeKey);
    return targets.filter((target) => places.includes(placeKey(placeOf(target))));
  });
  return [...started, ...targets].slice(0, 1);
}

function copiesOf({ status }: VMImage): readonly Copy[] {
  return status?.copies ?? [];
}

/** What tells copies apart: on a shared storage there is one for all nodes. */
export type CopyPlace = Pick<Copy, "hypervisor" | "storage"> & { readonly node?: string };

export function placeOf({ hypervisor, storage, node, isShared }: Target): CopyPlace {
  return { hypervisor, storage, ...(isShared ? {} : { node }) };
}

export function placeOfCopy({ hypervisor, storage, node }: Copy): CopyPlace {
  return { hypervisor, storage, ...(node === undefined ? {} : { node }) };
}

/** A place in words for people. */
export function placeText({ hypervisor, storage, node }: CopyPlace): string {
  return `${storage}${node === undefined ? "" : ` on ${node}`} of ${hypervisor}`;
}

export function placeKey({ hypervisor, storage, node = "" }: CopyPlace): string {
  return [hypervisor, storage, node].join(" ");
}

/** What the file is for: to fill disks, or to lie in a drive. */
export function useOf({ spec }: VMImage): "Disk" | "Disc" {
  return spec.format === "iso" ? "Disc" : "Disk";
}

/** Berth's own name carries the checksum: it is the file, wherever it is. */
export function fileNameOf({ spec }: VMImage): string {
  if (spec.fileName !== undefined) return spec.fileName;
  const [algorithm = "", digest = ""] = (spec.source.http?.checksum ?? "").split(":");
  return `berth-${algorithm}-${digest.slice(0, 64)}.${spec.format}`;
}
