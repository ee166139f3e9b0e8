import type { ClaimSpec } from "../../api/index.ts";
import type { Draft, Failure, Machine, NetworkShape } from "../../hypervisor/index.ts";
import type { Outcome } from "../../runtime/index.ts";
import { combined } from "../failures/index.ts";
import { failVm } from "./failing.ts";
import { keptDisks } from "./kept-disks.ts";
import type { Declared } from "./next.ts";
import { declarationOf, releaseSlots, type ConnectedTurn } from "./turn.ts";

/**
 * What an edit adds to a machine that stands is looked at before the first step of that edit: all
 * that is wrong with it is named at once, and nothing of it is applied. What was found to be well
 * is not asked again for this declaration; an edit that adds nothing asks for nothing.
 */
export async function refuseAdditions(
  turn: ConnectedTurn,
  declared: Declared,
): Promise<Outcome | undefined> {
  const findings = await additionFindings(turn, declared);
  if (findings.length === 0) return undefined;
  releaseSlots(turn);
  return failVm(turn, combined(findings));
}

/** What is wrong with what an edit adds. */
export async function additionFindings(
  turn: ConnectedTurn,
  declared: Declared,
): Promise<readonly Failure[]> {
  const { claim, seen, memory, driver, vm } = turn;
  if (claim === undefined || seen?.at !== "ours" || declared.isDeleting) return [];
  // What was changed by hand is put back as it was, and that was there once.
  if (!claim.spec.everExisted || !declared.isEdited) return [];
  const declaration = declarationOf(vm);
  if (memory.additions === declaration) return [];
  const kept = keptDisks(turn).map(({ disk }) => disk);
  const draft = additionsOf(declared, { claim: claim.spec, machine: seen.machine, kept });
  if (draft === undefined) return [];
  const { findings } = await driver.preflight(draft);
  if (findings.length === 0) memory.additions = declaration;
  return findings;
}

interface Standing {
  readonly claim: ClaimSpec;
  readonly machine: Machine;
  /** Disks that a keeper holds for it: they come back, and are not made. */
  readonly kept: readonly string[];
}

/** Disks to make or to move, and cards that come onto another network. Pure. */
export function additionsOf(
  { shape, disks, pinnedDisks = [] }: Pick<Declared, "shape" | "disks" | "pinnedDisks">,
  { claim, machine, kept }: Standing,
): Draft | undefined {
  const known = new Set([...(claim.volumes ?? []).map(({ disk }) => disk), ...kept]);
  const added = disks.flatMap((disk): Draft["disks"] => {
    const seen = machine.disks.find(({ name }) => name === disk.name);
    if (seen === undefined) return known.has(disk.name) ? [] : [disk];
    if (seen.storage === disk.storage || !pinnedDisks.includes(disk.name)) return [];
    // It is there, and only its storage is asked for: how much it takes there nobody knows before.
    return [{ name: disk.name, storage: disk.storage, fill: { from: "blank" } }];
  });
  const networks = (shape.networks ?? []).filter((card) => isOtherNetwork(card, machine));
  if (added.length === 0 && networks.length === 0) return undefined;
  const cards = networks.length === 0 ? {} : { networks };
  return { claim, node: machine.node, shape: cards, disks: added, isAddition: true };
}

function isOtherNetwork({ name, network }: NetworkShape, { shape }: Machine): boolean {
  const seen = shape.networks?.find((card) => card.name === name);
  return seen === undefined || (network !== undefined && seen.network !== network);
}
