import { usageError } from "../command.ts";
import type { ServedKind } from "./discovery.ts";
import { resolveKind, resolveKinds } from "./kinds.ts";

/** What a command line names: kinds with all their objects, or objects by name. */
export interface Target {
  readonly kind: ServedKind;
  /** Empty: all of them, or those that a selector picks. */
  readonly names: readonly string[];
}

/**
 * Reads `KIND`, `KIND,KIND`, `KIND NAME…` and `KIND/NAME…`, as kubectl does. The usage is that of
 * the command, for whoever mixes the forms.
 */
export function readTargets(
  served: readonly ServedKind[],
  words: readonly string[],
  usage: string,
): Target[] {
  const [first, ...names] = words;
  if (first === undefined) throw usageError(`KIND is missing. Usage: berth ${usage}`);
  if (words.some((word) => word.includes("/"))) return readSlashed(served, words, usage);
  return resolveKinds(served, first).map((kind) => ({ kind, names }));
}

function readSlashed(
  served: readonly ServedKind[],
  words: readonly string[],
  usage: string,
): Target[] {
  return words.map((word) => {
    const [kind = "", name = "", ...rest] = word.split("/");
    if (kind === "" || name === "" || rest.length > 0) {
      throw usageError(`"${word}" is not KIND/NAME. Usage: berth ${usage}`);
    }
    return { kind: resolveKind(served, kind), names: [name] };
  });
}
