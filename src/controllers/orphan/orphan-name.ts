import { createHash } from "node:crypto";
import type { OrphanSpec } from "../../api/index.ts";

/** The name of the one Orphan that there can be for a thing on a system. */
export function orphanName(
  systemId: string,
  { kind, externalId }: Pick<OrphanSpec, "kind" | "externalId">,
): string {
  const text = [systemId, kind, externalId].join("\n");
  return `o-${createHash("sha256").update(text).digest("hex").slice(0, 40)}`;
}
