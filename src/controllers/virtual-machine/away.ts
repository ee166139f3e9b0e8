import type { VirtualMachine } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Reach } from "../hypervisor/index.ts";
import { absent } from "./absent.ts";
import { failVm, waitForLook } from "./failing.ts";
import { forgetVm, holdsNothing, letGo } from "./letting-go.ts";
import { orForget } from "./plan-forgetting.ts";
import { annotationOf, isDeleting, loseSight, type Turn } from "./turn.ts";

/** Whoever holds back is woken; this is for the case that nobody does. */
const heldMs = 60_000;

/** There is no hypervisor to ask: what can be said and done without one. */
export async function goWithout(
  turn: Turn,
  name: string,
  { failure, nextLookMs }: Reach & { is: "away" },
): Promise<Outcome> {
  // No id was ever reserved for it, so there is nothing to look for.
  if (isDeleting(turn.vm) && (await holdsNothing(turn))) return letGo(turn);
  if (isDeleting(turn.vm) && annotationOf(turn.vm.metadata, "forget")) return forgetVm(turn);
  const told = forgettable(turn.vm, awayFailure(turn, name, failure));
  if (nextLookMs === undefined) {
    loseSight(turn, told);
    return failVm(turn, told);
  }
  return waitForLook(turn, told, { name, nextLookMs });
}

/** Answers of the hypervisor stay away, or nobody has asked it yet. */
export function mayBeSilent({ deps }: Turn, name: string): boolean {
  const { connections, lookups } = deps;
  const isUntried = connections.isUntried(name) && lookups.hypervisors.get(name) !== undefined;
  return isUntried || connections.isDoubted(name);
}

/** Somebody looks at it already; what that one finds wakes everybody. */
export function holdBack({ memory }: Turn): Outcome {
  memory.isHeld = true;
  return again("HeldBack", heldMs);
}

/** An object that is to go need not wait for what never comes back. */
function forgettable({ metadata }: VirtualMachine, failure: Failure): Failure {
  if (metadata.deletionTimestamp === undefined) return failure;
  const { namespace = "", name = "" } = metadata;
  return orForget(failure, { namespace, name });
}

/** That it is not there at all is more than that it is not connected. */
function awayFailure({ deps }: Turn, name: string, failure: Failure): Failure {
  return deps.lookups.hypervisors.get(name) === undefined ? absent("Hypervisor", name) : failure;
}
