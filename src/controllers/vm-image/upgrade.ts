import { claimKind, hypervisorKind, vmImageKind } from "../../api/index.ts";
import type { Claim, Hypervisor, VMImage } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { draftFileClaim, isHeld, type FilePart } from "../claims/index.ts";
import { defined } from "../failures/index.ts";
import { recordOf } from "./copies.ts";
import { fileNameOf, placeOfCopy, type Copy } from "./plan.ts";
import { fileOf } from "./steps.ts";

interface Upgrading {
  readonly client: Client;
  readonly installation: string;
  readonly nowMs: number;
}

/**
 * Writes the Claims of files that an earlier release brought: it kept in the status of the VMImage
 * alone which files those are. Such a copy says `brought` and names no Claim. Nothing is asked of a
 * hypervisor, and no file is touched. Safe to repeat. Resolves with how many were written.
 */
export async function claimBroughtFiles(upgrading: Upgrading): Promise<number> {
  const { client } = upgrading;
  const images = (await client.of(vmImageKind).list()).items.filter((image) => {
    return image.status?.copies?.some(isOld) === true;
  });
  if (images.length === 0) return 0;
  const hypervisors = (await client.of(hypervisorKind).list()).items;
  let written = 0;
  for (const image of images) written += await claimFilesOf(upgrading, image, hypervisors);
  return written;
}

function isOld({ brought, claim }: Copy): boolean {
  return brought && claim === undefined;
}

async function claimFilesOf(
  upgrading: Upgrading,
  image: VMImage,
  hypervisors: readonly Hypervisor[],
): Promise<number> {
  const { status = {} } = image;
  const { copies: old = [] } = status;
  const copies: Copy[] = [];
  for (const copy of old) {
    const found = hypervisors.find(({ metadata }) => metadata.name === copy.hypervisor);
    const systemId = found?.spec.systemId;
    copies.push(isOld(copy) ? await upgraded(upgrading, image, { copy, systemId }) : copy);
  }
  // If somebody writes it at the same moment, all of it is read and done again.
  await upgrading.client.of(vmImageKind).updateStatus({ ...image, status: { ...status, copies } });
  return copies.filter(({ brought }, index) => brought && old[index]?.claim === undefined).length;
}

interface OldCopy {
  readonly copy: Copy;
  /** Undefined: the Hypervisor is gone, or was never reached. */
  readonly systemId: string | undefined;
}

/** The copy with its Claim. A file that is not there, or that another image has, gets none. */
async function upgraded(
  upgrading: Upgrading,
  image: VMImage,
  { copy, systemId }: OldCopy,
): Promise<Copy> {
  const mayBeThere = copy.state !== "Missing" && systemId !== undefined;
  const claim = mayBeThere ? await claimCopy(upgrading, image, { copy, systemId }) : undefined;
  return claim === undefined ? { ...copy, brought: false } : { ...copy, claim };
}

/** The name of the Claim; undefined: another VMImage has the file. */
async function claimCopy(
  { client, installation, nowMs }: Upgrading,
  image: VMImage,
  { copy, systemId }: { readonly copy: Copy; readonly systemId: string },
): Promise<string | undefined> {
  const { hypervisor: name, node, state } = copy;
  const draft = draftFileClaim(
    {
      image,
      hypervisor: { name, systemId },
      node,
      file: partOf(image, copy),
      state: state === "Present" ? "Bound" : "Reserved",
    },
    { installation, nowMs },
  );
  const claims = client.of(claimKind);
  try {
    return (await claims.create(draft)).metadata.name;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409) throw error;
    const there: Claim = await claims.get({ name: draft.metadata.name ?? "" });
    const isOwn = isHeld(there.spec) && there.spec.owner.uid === image.metadata.uid;
    return isOwn ? there.metadata.name : undefined;
  }
}

function partOf(image: VMImage, copy: Copy): FilePart {
  const { storage, fileName: name = fileNameOf(image), size, volume } = copy;
  const isCurrent = name === fileNameOf(image);
  const checksum = isCurrent ? image.spec.source.http?.checksum : undefined;
  const operation = operationOf(image, copy);
  return defined<FilePart>({ ...fileOf(image), storage, name, checksum, size, volume, operation });
}

/** Where the storage is shared, the node that works at it is not known: its record says it. */
function operationOf(image: VMImage, copy: Copy): FilePart["operation"] {
  const record = recordOf(image, placeOfCopy(copy));
  const { node } = copy;
  if (record === undefined || node === undefined || record.step === "Remove") return undefined;
  const { id, step, since } = record;
  return { id, step, node, since };
}
