import type { ClaimSpec } from "../../api/index.ts";
import { isSeedOf } from "../../hypervisor/index.ts";
import type { Machine, Shape } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { basisOf, stepOrWait, wasJustDone, type Next, type PlanInput } from "./next.ts";
import { seedDisc, type SeedDisc } from "./seed.ts";

/** How long a guest may need until it has read what it was told, if no agent says so before. */
const readSeconds = 15 * 60;

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/**
 * The disc for the first boot: it is in the Claim before it is made, so that it is found and
 * removed whatever happens in between. It may hold secrets.
 */
export function planVmSeed(input: PlanInput, claim: ClaimSpec, machine: Machine): Next | undefined {
  const wanted = wantedDisc(input, claim, machine);
  if (wanted === undefined || isInserted(machine, wanted.fileName)) return undefined;
  const { storage, fileName, content } = wanted;
  if (!seedsOf(claim).some(({ id }) => id === fileName)) {
    const entry: ClaimVolume = { id: fileName, role: "CloudInit", storage, state: "Attached" };
    return { do: "record", change: { volumes: [...(claim.volumes ?? []), entry] } };
  }
  const { node } = machine;
  const operation = { kind: "putSeed", claim, node, storage, fileName, content } as const;
  const step = { name: "UploadSeed", operation, intent: putIntent(wanted, node) } as const;
  return wasJustDone(input, step) ? undefined : stepOrWait(input, step, machine.lock);
}

/** The part of the shape that inserts the disc, once it lies there. */
export function seedShape(input: PlanInput, claim: ClaimSpec, machine: Machine): Shape {
  const wanted = wantedDisc(input, claim, machine);
  if (wanted === undefined || isInserted(machine, wanted.fileName)) return {};
  const { storage, fileName } = wanted;
  return { cloudInit: { seed: { state: "Inserted", storage, fileName } } };
}

function wantedDisc(input: PlanInput, claim: ClaimSpec, machine: Machine): SeedDisc | undefined {
  const { seed } = input.declared;
  if (seed === undefined || claim.everExisted) return undefined;
  return seedDisc(seed, claim.identity, machine);
}

/** With the node: whoever was moved meanwhile needs the disc where it is now. */
function putIntent({ storage, fileName }: SeedDisc, node: string): string {
  return `Put the data of the first boot onto ${storage} of ${node}, as ${fileName}.`;
}

/** Ejected when the guest has read it, and never before it ran; then removed. */
export function planVmSeedRead(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  if (!claim.everExisted || machine.power === "Suspended") return undefined;
  const held = heldSeed(claim, machine);
  if (held === undefined) return planVmSeedGone(input, claim, machine.node);
  if (!guard("eject-seed-once-read", isRead(input, machine))) return undefined;
  const shape: Shape = { cloudInit: { seed: { state: "Ejected" } } };
  const operation = { kind: "configure", claim, at: basisOf(machine), shape } as const;
  const intent = `Eject ${held}, which the guest has read.`;
  return stepOrWait(input, { name: "EjectSeed", operation, intent }, machine.lock);
}

function isRead({ hasAgentAnswered = false }: PlanInput, machine: Machine): boolean {
  if (machine.power !== "Running") return false;
  return hasAgentAnswered || (machine.uptimeSeconds ?? 0) >= readSeconds;
}

/** A disc that lies there and is in no drive of its machine: nobody would find it later. */
export function planVmSeedLoose(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Next | undefined {
  const isHeld = heldSeed(claim, machine) !== undefined;
  return isHeld ? undefined : planVmSeedGone(input, claim, machine.node);
}

/** Discs that the Claim knows and no machine holds: removed, and then forgotten. */
export function planVmSeedGone(
  input: PlanInput,
  claim: ClaimSpec,
  node: string | undefined,
): Next | undefined {
  const [seed] = seedsOf(claim);
  if (seed === undefined || node === undefined) return undefined;
  const { id: fileName, storage = "" } = seed;
  const operation = { kind: "removeSeed", claim, node, storage, fileName } as const;
  const intent = `Remove ${fileName} from ${storage}.`;
  const step = { name: "RemoveSeed", operation, intent } as const;
  if (!wasJustDone(input, step)) return stepOrWait(input, step, undefined);
  const volumes = claim.volumes?.filter(({ id }) => id !== fileName) ?? [];
  return { do: "record", change: { volumes } };
}

/** The seconds until a disc that nobody confirmed to have read is taken out all the same. */
export function seedSecondsLeft(claim: ClaimSpec, machine: Machine): number | undefined {
  if (heldSeed(claim, machine) === undefined || machine.power !== "Running") return undefined;
  return Math.max(readSeconds - (machine.uptimeSeconds ?? 0), 0);
}

/** Whether the disc for its first boot is in its drive. */
export function holdsSeed(claim: ClaimSpec, machine: Machine): boolean {
  return heldSeed(claim, machine) !== undefined;
}

function heldSeed(claim: ClaimSpec, machine: Machine): string | undefined {
  const seed = machine.shape.cloudInit?.seed;
  if (seed?.state !== "Inserted") return undefined;
  return isSeedOf(claim.identity, seed.fileName) ? seed.fileName : undefined;
}

function isInserted(machine: Machine, fileName: string): boolean {
  const seed = machine.shape.cloudInit?.seed;
  return seed?.state === "Inserted" && seed.fileName === fileName;
}

/** A disc is no volume of a machine: its file name stands for it. */
function seedsOf({ volumes = [], identity }: ClaimSpec): ClaimVolume[] {
  return volumes.filter(({ id, role }) => role === "CloudInit" && isSeedOf(identity, id));
}
