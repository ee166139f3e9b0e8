import type { Orphan } from "../../api/index.ts";
import type { Find } from "./find.ts";
import type { OrphanOperation } from "./status.ts";

/** All that a decision rests on. */
export interface DecisionInput {
  readonly spec: Orphan["spec"];
  /** What the last whole sweep found; absent: it is not there, or declared, or let go. */
  readonly find: Find | undefined;
  /** Which sweep that was. */
  readonly swept: number;
  readonly operation: OrphanOperation | undefined;
  /** The last sweep that may not have seen its effect; absent: it may still be under way. */
  readonly settledAt: number | undefined;
  /** The node that it was destroyed on, if anything was. */
  readonly node: string | undefined;
  /** It was not found for so long, and so often, that it is gone. */
  readonly isLongAbsent: boolean;
  /** The Hypervisor's policy lets it go now. */
  readonly isChosen: boolean;
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
  | { readonly do: "adopt" }
  | { readonly do: "destroy"; readonly byPolicy: boolean };

/** Decides what is done about an Orphan. Pure. */
export function planOrphan(input: DecisionInput): OrphanNext {
  const { spec, find, operation } = input;
  if (operation?.step === "Destroy") return planDestroyed(input);
  if (spec.decision === "Adopt") return { do: "adopt" };
  if (spec.decision === "Keep") return planKept(input);
  if (find === undefined) return { do: "remove" };
  if (spec.decision === undefined && !input.isChosen) return { do: "rest", as: "undecided" };
  if (find.allowed.includes("Destroy")) {
    return { do: "destroy", byPolicy: spec.decision === undefined };
  }
  return { do: "refuse", message: notAllowed(find) };
}

/** A person's word to leave it outlives a look that does not show it. */
function planKept({ find, isLongAbsent }: DecisionInput): OrphanNext {
  if (find !== undefined) return { do: "rest", as: "kept" };
  return isLongAbsent ? { do: "remove" } : { do: "rest", as: "keptUnseen" };
}

/** What was done is believed when everything was listed again. */
function planDestroyed({ find, settledAt, swept, node }: DecisionInput): OrphanNext {
  if (settledAt === undefined) return { do: "wait" };
  if (swept <= settledAt) return { do: "list" };
  // Another of the same id, on another node, is another thing: nobody has decided about that.
  const isGone = find === undefined || find.node !== node;
  return isGone ? { do: "finish" } : { do: "vain" };
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
  const isTold = ownership !== "Unattributed";
  const why = isTold
    ? "Its disk says onDelete: Retain"
    : "Nobody can tell which of several is meant";
  return `${why}: remove it on the hypervisor.`;
}
