import type { Orphan } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { OperationRecord } from "../operations/index.ts";
import type { Find } from "./find.ts";

/** All that a decision rests on. */
export interface DecisionInput {
  readonly spec: Orphan["spec"];
  /** What the last whole sweep found; absent: it is not there, or declared, or let go. */
  readonly find: Find | undefined;
  /** Which sweep that was. */
  readonly swept: number;
  /** The operation that has ended, and whose effect is to be confirmed. */
  readonly operation: Pick<OperationRecord, "step"> | undefined;
  /** The last sweep that may not have seen its effect; absent: it may still be under way. */
  readonly settledAt: number | undefined;
  /** The node that it was destroyed on, if anything was. */
  readonly node: string | undefined;
  /** It was not found for so long, and so often, that it is gone. */
  readonly isLongAbsent: boolean;
  /** The Hypervisor's policy lets it go now. */
  readonly isChosen: boolean;
  /** What the sweep found, and what it was decided for that it goes: see observation.ts. */
  readonly observation: string | undefined;
  readonly decidedFor: string | undefined;
}

/** The one next thing for an Orphan. */
export type OrphanNext =
  /** Nothing is left to say about it: the object goes. */
  | { readonly do: "remove" }
  /** It was destroyed and is proven gone. */
  | { readonly do: "finish" }
  /** Something was done: it has to be listed again before anything is concluded. */
  | { readonly do: "list" }
  | { readonly do: "wait" }
  | { readonly do: "vain" }
  | { readonly do: "rest"; readonly as: "undecided" | "kept" | "keptUnseen" }
  | { readonly do: "refuse"; readonly message: string }
  /** Something else has the id than what was decided about: nobody has decided about that. */
  | { readonly do: "changed"; readonly find: Find }
  | { readonly do: "adopt" }
  | { readonly do: "destroy"; readonly byPolicy: boolean };

/** Decides what is done about an Orphan. Pure. */
export function planOrphan(input: DecisionInput): OrphanNext {
  const { spec, find, operation } = input;
  if (operation?.step === "Destroy") return planDestroyed(input);
  if (spec.decision === "Adopt") return { do: "adopt" };
  if (spec.decision === "Keep") return planKept(input);
  if (find === undefined) return { do: "remove" };
  const isDecided = spec.decision !== undefined || input.isChosen;
  return guard("orphan-decided", isDecided)
    ? planDestruction(input, find)
    : { do: "rest", as: "undecided" };
}

function planDestruction(input: DecisionInput, find: Find): OrphanNext {
  const { spec } = input;
  const isSame = spec.decision === undefined || input.observation === input.decidedFor;
  if (!guard("orphan-as-decided", isSame)) return { do: "changed", find };
  if (guard("orphan-destroy-allowed", find.allowed.includes("Destroy"))) {
    return { do: "destroy", byPolicy: spec.decision === undefined };
  }
  return { do: "refuse", message: notAllowed(find) };
}

/** A person's word to leave it outlives a look that does not show it. */
function planKept({ find, isLongAbsent }: DecisionInput): OrphanNext {
  if (find !== undefined) return { do: "rest", as: "kept" };
  return guard("kept-orphan-long-absent", isLongAbsent)
    ? { do: "remove" }
    : { do: "rest", as: "keptUnseen" };
}

/** What was done is believed when everything was listed again. */
function planDestroyed(input: DecisionInput): OrphanNext {
  const { find, settledAt, swept, node } = input;
  if (settledAt === undefined) return { do: "wait" };
  if (!guard("orphan-listed-again", swept > settledAt)) return { do: "list" };
  // Another of the same id is another thing: nobody has decided about that.
  const isGone = find === undefined || find.node !== node || isAnother(input, find);
  return isGone ? { do: "finish" } : { do: "vain" };
}

/** A VM that was destroyed in part is still the same one. */
function isAnother({ observation, decidedFor }: DecisionInput, { kind }: Find): boolean {
  if (kind === "Machine" || kind === "Husk" || decidedFor === undefined) return false;
  return observation !== decidedFor;
}

function notAllowed({ kind, power, command, ownership }: Find): string {
  if (kind === "Machine") {
    const state = power?.toLowerCase() ?? "at work";
    return `It is ${state}: stop the machine first, then it is destroyed.`;
  }
  const by = command === undefined ? "" : ` ${command}`;
  if (kind === "Husk" || kind === "Lock") {
    const why =
      ownership === "Ours" ? "No API token may clear a lock." : "It is not provably ours.";
    return `${why}${by}`;
  }
  const isTold = ownership === "Ours" || ownership === "Marked";
  const why = isTold
    ? "Its disk says onDelete: Retain"
    : "Nobody can tell which of several is meant";
  return `${why}: remove it on the hypervisor.`;
}
