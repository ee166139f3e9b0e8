import { apiVersion } from "../../api/index.ts";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { ObjectMeta } from "../../kernel/object.ts";
import { claimName } from "./claim-name.ts";
import { fileIdentityOf } from "./identity.ts";
import { withOwnerLabel } from "./owner-label.ts";

export type FilePart = NonNullable<ClaimSpec["file"]>;

/** Where a file is on a system. `node` is absent where the storage is shared. */
export interface FilePlace extends Pick<FilePart, "storage" | "name" | "content"> {
  readonly node?: string | undefined;
}

/**
 * The id of a file on its system. No part contains a slash, and no id of a VM does, so two files
 * never have the same, nor a file and a VM.
 */
export function fileId({ node, storage, content, name }: FilePlace): string {
  return [...(node === undefined ? [] : [node]), storage, content, name].join("/");
}

export function isFile({ target }: ClaimSpec): boolean {
  return target === "File";
}

/** What the Claim of a file that is about to be brought says. */
export interface FileReservation {
  readonly image: { readonly metadata: ObjectMeta };
  readonly hypervisor: ClaimSpec["hypervisor"];
  readonly node?: string | undefined;
  readonly file: FilePart;
  /** Bound: the file was brought by a release that wrote no Claims of files. */
  readonly state?: "Reserved" | "Bound";
}

export function draftFileClaim(
  { image, hypervisor, node, file, state = "Reserved" }: FileReservation,
  { installation, nowMs }: { readonly installation: string; readonly nowMs: number },
): Claim {
  const { namespace = "", name = "", uid = "" } = image.metadata;
  const externalId = fileId({ ...file, node });
  const claim = claimName(hypervisor.systemId, externalId);
  const at = formatTime(nowMs);
  return withOwnerLabel({
    apiVersion,
    kind: "Claim",
    metadata: { name: claim },
    spec: {
      target: "File",
      hypervisor,
      externalId,
      idChosenBy: "Berth",
      state,
      role: "VM",
      origin: "Created",
      everExisted: false,
      identity: fileIdentityOf(installation, uid, claim),
      installation,
      owner: { namespace, name, uid },
      ...(node === undefined ? {} : { node }),
      file,
      reservedAt: at,
      ...(state === "Bound" ? { boundAt: at } : {}),
    },
  });
}
