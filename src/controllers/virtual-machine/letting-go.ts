import { finalizers, virtualMachineKind } from "../../api/index.ts";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { again, removeFinalizer, settled, type Outcome } from "../../runtime/index.ts";
import { isPending } from "../claims/index.ts";
import { endBeginning } from "./beginning.ts";
import { failVm } from "./failing.ts";
import { dropPendingKeeper, findKeeper } from "./keeper.ts";
import type { Next } from "./next.ts";
import { tellEnd, tellStaying } from "./tell-end.ts";
import { annotationOf, releaseSlots, type ConnectedTurn, type Turn } from "./turn.ts";

/** The machine is gone or was let go: its Claim rests, and the object may go. */
export async function finish(
  turn: ConnectedTurn,
  { how, stays = [] }: Omit<Next & { do: "finish" }, "do">,
): Promise<Outcome> {
  const { deps, claim } = turn;
  if (claim !== undefined && how === "Retire") await deps.ledger.retire(claim);
  if (claim !== undefined && how === "Release") {
    await deps.ledger.release(claim, releaseReason(turn));
  }
  if (claim !== undefined) tellEnd(turn, claim.spec, how);
  if (claim !== undefined && stays.length > 0) tellStaying(turn, claim.spec, stays);
  return letGo(turn);
}

function releaseReason({ seen, vm }: Turn): string {
  const forgotten = annotationOf(vm.metadata, "forget");
  if (forgotten !== undefined) return `forgotten: ${forgotten}`.slice(0, 1024);
  if (seen?.at === "foreign" && seen.reason === "Husk") {
    return "an empty reservation that nothing proves to be ours";
  }
  if (seen?.at === "absent") return "its machine was gone, and volumes that have to stay were not";
  if (seen?.at !== "ours") return "retained by policy";
  return "retained by policy while it was suspended, so its mark does not say so";
}

/** Nothing of ours is left, or it was let go: only now may the object go. */
export async function letGo(turn: Turn): Promise<Outcome> {
  const { deps, key } = turn;
  releaseSlots(turn);
  endBeginning(turn);
  const objects = deps.client.of(virtualMachineKind);
  const mayGo = turn.claim !== undefined || (await holdsNothing(turn));
  if (!guard("let-go-holds-nothing", mayGo)) return again("NotYet");
  const left = await removeFinalizer<VirtualMachine>(objects, turn.vm, finalizers.machine);
  if (left === undefined) deps.vms.forget(key);
  else deps.vms.note(left);
  deps.memory.delete(key);
  return settled;
}

/**
 * No Claim is held for it: asked of the server, because what lies here may be old. One that is
 * Pending is given up, because nothing was sent for it.
 */
export async function holdsNothing(turn: Turn): Promise<boolean> {
  const { namespace = "", name = "" } = turn.vm.metadata;
  const { ledger, vms, client } = turn.deps;
  turn.vm = vms.note(await client.of(virtualMachineKind).get({ namespace, name }));
  const { externalId, hypervisor = "" } = turn.vm.status ?? {};
  if (externalId !== undefined && ledger.systemOf(hypervisor) === undefined) return false;
  const claim = await ledger.find(turn.vm);
  if (!claim.ok) return false;
  if (claim.value === undefined) return true;
  if (!isPending(claim.value.spec)) return false;
  await ledger.remove(claim.value);
  return true;
}

/** What passes by itself is waited for so long, before an object is let go as it is. */
const patienceMs = 20_000;

/**
 * A person said to forget it, and it cannot be let go in good order: the machine cannot be seen,
 * something else has its id, or a change of its mark is refused. Nothing is touched then.
 */
export function isForgotten({ vm, claim, failed, deps }: Turn): boolean {
  if (failed === undefined || claim === undefined) return false;
  if (annotationOf(vm.metadata, "forget") === undefined) return false;
  const failingMs = deps.clock.nowMs() - Date.parse(failed.firstAt);
  return categoryPolicies[failed.category].next === "stall" || failingMs >= patienceMs;
}

/**
 * The machine is given up, by a person's word. The Claim goes on saying where the machine
 * was, so that one which comes back is no orphan; nothing was destroyed. The same holds for the
 * keeper that it was handing disks to: its Claim goes first, because only the other leads to it.
 */
export async function forgetVm(turn: Turn): Promise<Outcome> {
  const { deps, vm } = turn;
  const claim = await deps.ledger.find(vm);
  if (!claim.ok) return failVm(turn, claim.failure);
  turn.claim = claim.value;
  const why = `forgotten: ${annotationOf(vm.metadata, "forget") ?? ""}`.slice(0, 1024);
  const keeper = await findKeeper(turn);
  if (keeper !== undefined) await deps.ledger.release(keeper, why);
  if (claim.value !== undefined) await closeClaim(turn, claim.value, why);
  tellForgotten(turn, why);
  return letGo(turn);
}

async function closeClaim({ deps }: Turn, claim: Claim, why: string): Promise<void> {
  await dropPendingKeeper(deps.ledger, claim);
  if (isPending(claim.spec)) await deps.ledger.remove(claim);
  else await deps.ledger.release(claim, why);
}

function tellForgotten({ deps, vm, seen }: Turn, why: string): void {
  const { externalId = "", hypervisor = "" } = vm.status ?? {};
  const isUnseen = seen === undefined || seen.at === "unknown";
  const how = isUnseen ? "Let go without being seen" : "Let go as it is, and not touched";
  const message = `${how}: the machine ${externalId} on ${hypervisor}; ${why}`.slice(0, 1024);
  deps.events.event(vm, { type: "Warning", reason: "Forgotten", message });
}
