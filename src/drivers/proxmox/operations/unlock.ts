import { guard, precondition } from "../../../kernel/guard.ts";
import { isJsonObject } from "../../../kernel/json.ts";
import { answered, failed } from "../../../hypervisor/index.ts";
import type {
  Answer,
  Begun,
  ClearHusk,
  Failure,
  Fence,
  Unlock,
} from "../../../hypervisor/index.ts";
import { machinePath } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { causeOf, failureOf } from "../errors.ts";
import { observe } from "../observe.ts";
import { textOf } from "../wire/rows.ts";
import type { Ticket } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";

/**
 * Clears a lock. Only root's own login may (`skiplock`, qemu-server), and then the server asks
 * nothing more: so that the machine is ours and its work is dead is found out in this very step.
 */
export async function unlock(
  context: DriverContext,
  { claim, at, lock }: Unlock,
  fence: Fence,
): Promise<Begun> {
  // Only what runs is locked by this word.
  const withoutPower = lock !== "suspended";
  const seen = await observe(context, { ...claim, node: at.node }, { withoutPower });
  if (seen.at === "unknown") return refused(seen.failure);
  if (seen.at !== "ours") return { outcome: "changed", detail: `it is ${seen.at} now` };
  const { machine } = seen;
  if (machine.lock === undefined) return { outcome: "done" };
  const isSameLock = guard("unlock-same-lock", machine.lock.detail === lock);
  if (!isSameLock || !guard("unlock-as-decided", machine.version === at.version)) {
    return { outcome: "changed", detail: `it is locked (${machine.lock.detail})` };
  }
  if (!guard("unlock-dead-lock", machine.lock.state === "Dead")) {
    return { outcome: "blocked", waitsFor: machine.lock.detail };
  }
  const ticket = await login(context, fence);
  if (!ticket.ok) return refused(ticket.failure);
  const place = { node: machine.node, externalId: claim.externalId };
  const same = precondition("unlock-digest", { digest: machine.version });
  const params = { delete: "lock", skiplock: 1, ...same };
  const path = machinePath(place, "/config");
  const request = { path, params, ticket: ticket.value };
  const result = await context.api.write("PUT", request, () => fence.mayWrite());
  return begunOf(result, `unlock VM ${claim.externalId}`);
}

/** Destroys an empty reservation. There is nothing in it but its lock. */
export async function clearHusk(
  context: DriverContext,
  operation: ClearHusk,
  fence: Fence,
): Promise<Begun> {
  const { kind: _, claim, node, ...hints } = operation;
  const seen = await observe(context, { ...claim, node }, hints);
  if (seen.at === "unknown") return refused(seen.failure);
  if (seen.at === "absent") return { outcome: "done" };
  if (seen.at !== "opaque") return { outcome: "changed", detail: `it is ${seen.at} now` };
  if (!guard("clear-placeholder-dead-lock", seen.lock.state === "Dead")) {
    return { outcome: "blocked", waitsFor: seen.lock.detail };
  }
  const ticket = await login(context, fence);
  if (!ticket.ok) return refused(ticket.failure);
  const path = machinePath({ node: seen.node, externalId: claim.externalId });
  // Volumes of its id are not swept along: by their names alone they might be another's.
  const params = { purge: 1, skiplock: 1, "destroy-unreferenced-disks": 0 };
  const request = { path, params, ticket: ticket.value };
  const result = await context.api.write("DELETE", request, () => fence.mayWrite());
  return begunOf(result, `destroy the empty VM ${claim.externalId}`);
}

/** Any other error says nothing about the account. */
const refusals: ReadonlySet<number> = new Set([401, 403]);

/** A ticket for this one use. It is kept nowhere. */
async function login(context: DriverContext, fence: Fence): Promise<Answer<Ticket>> {
  const { unlock: account } = context;
  if (account === undefined) return failed(noAccount());
  const request = { path: "/access/ticket", params: { ...account } };
  const result = await context.api.write("POST", request, () => fence.mayWrite());
  if (result.type === "error" && refusals.has(result.status)) {
    return failed(refusedLogin(account.username, causeOf(result)));
  }
  if (result.type !== "data") return failed(failureOf(result, "log in to unlock"));
  const data = isJsonObject(result.data) ? result.data : {};
  const ticket = textOf(data, "ticket");
  if (ticket === "") return failed(refusedLogin(account.username, "no ticket came back"));
  return answered({ ticket, csrf: textOf(data, "CSRFPreventionToken") });
}

function noAccount(): Failure {
  return {
    category: "LockError",
    message: "no API token may unlock, and the Hypervisor names no account that may",
    remedy: "Name a Secret with root's username and password in spec.unlockCredentials.",
  };
}

function refusedLogin(username: string, cause: string): Failure {
  return {
    category: "LockError",
    message: `the account ${username} of spec.unlockCredentials was refused`,
    cause,
    remedy: "Write its Secret anew, with username (root@pam) and password; or unlock by hand.",
  };
}
