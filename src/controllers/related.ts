import type { Claim, Hypervisor, VirtualMachine, VMImage } from "../api/index.ts";
import type { Informer } from "../client/index.ts";
import { categoryPolicies, type InventoryMachine } from "../hypervisor/index.ts";
import { objectKey } from "../kernel/object.ts";
import type { FilePart } from "./claims/index.ts";
import { fileNameOf } from "./vm-image/index.ts";

/** Whether a row tells of a machine what was last seen of it. */
export function looksAs(
  { powerState }: NonNullable<VirtualMachine["status"]>,
  row: InventoryMachine | undefined,
): boolean {
  return row?.power === "Unknown" || row?.power === powerState;
}

/** What copies of a machine wait for. */
export function standing({ status }: VirtualMachine): unknown {
  const { hypervisor, externalId, conditions = [] } = status ?? {};
  return [hypervisor, externalId, conditions.find(({ type }) => type === "Provisioned")?.status];
}

export function keysOf(vms: Informer<VirtualMachine>, index: string, value: string): string[] {
  return vms.byIndex(index, value).map(({ metadata }) => objectKey(metadata));
}

/** Images that name the file of a Claim and are not its owner: they use it, or wait for it. */
export function imagesNaming(images: Informer<VMImage>): (claim: Claim) => string[] {
  return ({ spec: { file, owner } }) => {
    if (file === undefined) return [];
    const naming = images.list().filter((image) => fileNameOf(image) === file.name);
    return naming
      .map(({ metadata }) => objectKey(metadata))
      .filter((key) => key !== objectKey(owner));
  };
}

/** The image that names a file, asks for its very content, and is not deleted. */
export function heirIn(
  images: Pick<Informer<VMImage>, "list">,
): (file: FilePart) => VMImage | undefined {
  return ({ name, checksum }) => {
    return images.list().find((image) => {
      const isSame = image.spec.source.http?.checksum === checksum;
      const isLeaving = image.metadata.deletionTimestamp !== undefined;
      return isSame && !isLeaving && fileNameOf(image) === name;
    });
  };
}

export function fileStateOf({ spec }: Claim): unknown {
  return [spec.state, spec.owner];
}

/** Images with copies on a Hypervisor that is being deleted: they remove their files from it. */
export function imagesOn(images: Informer<VMImage>): (hypervisor: Hypervisor) => string[] {
  return ({ metadata: { name, deletionTimestamp } }) => {
    if (deletionTimestamp === undefined) return [];
    const there = images.list().filter(({ status }) => {
      return status?.copies?.some(({ hypervisor }) => hypervisor === name) === true;
    });
    return there.map(({ metadata }) => objectKey(metadata));
  };
}

/**
 * A step that failed by itself, and of which only a few attempts are made. What changes elsewhere
 * on the hypervisor does not help it: every attempt keeps its time.
 */
export function hasCountedAttempts({ status }: VirtualMachine): boolean {
  const { failure } = status ?? {};
  if (failure?.step === undefined) return false;
  const { next, attemptsMax } = categoryPolicies[failure.category];
  return next === "retry" && attemptsMax !== Infinity;
}
