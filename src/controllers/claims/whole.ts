import type { Claim } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import { expired } from "../../kernel/status.ts";
import { isLabelled } from "./owner-label.ts";

/**
 * Refuses a Claim that was read through the CustomResourceDefinition of an earlier release. Such a
 * server drops what it does not know also when it reads: the Claim seems never to have existed, and
 * to know no volume of others. A watch goes on like that for a while after the CRD was applied, and
 * one of several servers may lag behind the others.
 *
 * This release labels every Claim that it writes, and its schema gives every one a target.
 */
export function demandWhole({ metadata, spec }: Claim): void {
  const isPruned = isLabelled(metadata) && spec.target === undefined;
  if (guard("claim-read-whole", !isPruned)) return;
  const { name = "" } = metadata;
  // As a place that is too old: an informer lists everything again.
  throw expired(
    `the Claim ${name} was read by the CustomResourceDefinition of an earlier release, which drops ` +
      "fields: apply the ones of this release (berth crds | kubectl apply -f -)",
  );
}
