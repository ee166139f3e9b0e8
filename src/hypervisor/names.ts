import type { PartSlots } from "./contract.ts";
import type { Machine, Shape } from "./machine.ts";

/**
 * Which part of an unmarked machine each name of a declaration means, for adoption: a name that is
 * the word for a place means what sits there; the others take what is left, in order. It is only a
 * proposal: `observe` with these `names` shows what would differ, and a person approves it.
 */
export function proposeNames(declared: Shape, machine: Machine): Required<ProposedNames> {
  return {
    disks: match(declared.disks ?? [], machine.disks),
    networks: match(declared.networks ?? [], machine.networks),
  };
}

type ProposedNames = Pick<PartSlots, "disks" | "networks">;

function match(
  declared: readonly { readonly name: string }[],
  seen: readonly { readonly slot: string }[],
): Record<string, string> {
  const slots = seen.map(({ slot }) => slot).toSorted(inOrder);
  const names = declared.map(({ name }) => name);
  const left = slots.filter((slot) => !names.includes(slot));
  const pairs = names.flatMap((name) => {
    const slot = slots.includes(name) ? name : left.shift();
    return slot === undefined ? [] : [[name, slot] as const];
  });
  return Object.fromEntries(pairs);
}

/** "scsi2" comes before "scsi10". */
function inOrder(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}
