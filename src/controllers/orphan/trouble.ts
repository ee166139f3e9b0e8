import type { Hypervisor } from "../../api/index.ts";
import type { SweepTrouble } from "../hypervisor/index.ts";
import { goneText, type Gone } from "./extent.ts";
import { orphansMax } from "./memory.ts";
import { recordOf } from "./record.ts";
import { isBelieved } from "./suspicion.ts";
import { listText } from "../../kernel/list-text.ts";

/** What is wrong with the sweeps of a hypervisor, for its status. */
export function sweepTroubleOf(
  hypervisor: Hypervisor | undefined,
  nowMs: number,
): SweepTrouble | undefined {
  const { suspicion, unreported } = recordOf(hypervisor, nowMs);
  if (suspicion !== undefined && !isBelieved(suspicion, { nowMs, of: "Survey" })) {
    return { reason: "SuspiciousSweep", message: suspicionText(suspicion.gone) };
  }
  if (unreported === 0) return undefined;
  return { reason: "TooManyOrphans", message: unreportedText(unreported) };
}

export function suspicionText(gone: readonly Gone[]): string {
  const texts = [...new Set(gone.map(goneText))];
  return `Suddenly not there any more: ${listText(texts)}. Nothing is concluded from that.`;
}

function unreportedText(unreported: number): string {
  return (
    `${orphansMax} Orphans wait for a decision, and ${unreported} more things that nothing ` +
    "declares are not among them. Decide about some, or find what all have in common: " +
    "berth orphans."
  );
}
