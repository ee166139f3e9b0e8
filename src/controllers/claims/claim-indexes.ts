import type { Claim } from "../../api/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { isFile } from "./files.ts";

/** `owner` and `system` have the Claims of VMs only, `file` those of files. */
export const claimIndexes = {
  owner: ({ spec }: Claim): string[] => (isFile(spec) ? [] : [objectKey(spec.owner)]),
  system: ({ spec }: Claim): string[] => (isFile(spec) ? [] : [spec.hypervisor.systemId]),
  file: ({ spec }: Claim): string[] => (isFile(spec) ? [spec.hypervisor.systemId] : []),
  hypervisor: ({ spec }: Claim): string[] => [spec.hypervisor.name],
};
