import type { Caller } from "./access/rights.ts";
import type { Cluster } from "./cluster.ts";
import type { GuestConfig } from "./config-file.ts";
import { parameterError, PveError } from "./errors.ts";
import type { Upload } from "./http/body.ts";
import type { LockRequest } from "./locks.ts";
import type { Process } from "./process.ts";
import type { Parameters } from "./schema/check.ts";
import { forkTask, type Task } from "./tasks.ts";

/** One call of an endpoint, checked and permitted, on the node where it runs. */
export interface Call {
  readonly cluster: Cluster;
  readonly caller: Caller;
  /** Those of the path included. */
  readonly parameters: Parameters;
  readonly node: string;
  readonly upload?: Upload;
  /** A fault: no worker can be started by this call. */
  readonly hasNoWorker?: boolean;
}

/** What an endpoint does; its value is the reply's data. */
export type Endpoint = (call: Call) => Process<unknown>;

/** A list with more entries than it shows. */
export class Listing {
  readonly data: unknown;
  readonly total: number;

  constructor(data: unknown, total: number) {
    this.data = data;
    this.total = total;
  }
}

export function vmidOf(call: Call): number {
  return Number(call.parameters["vmid"]);
}

/** Forks a worker of the call; its user and node are the call's. */
export function fork(
  call: Call,
  { type, id }: { readonly type: string; readonly id?: string },
  body: (task: Task) => Process<void>,
): string {
  const options = {
    node: call.node,
    type,
    id: id ?? call.parameters["vmid"] ?? "",
    user: call.caller.id,
    isRefused: call.hasNoWorker === true,
  };
  return forkTask(call.cluster, options, body);
}

/** Options that only the user root@pam itself may use; a token of it may not. */
export function demandRootFor(call: Call, ...names: string[]): void {
  for (const name of names) {
    if (isSet(call.parameters[name]) && call.caller.id !== "root@pam") {
      throw parameterError({ [name]: "Only root may use this option." });
    }
  }
}

export function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== "0" && value !== "";
}

/** Throws if a config lock is set; a call that skips locks does not look. */
export function demandUnlocked(config: GuestConfig, skipsLock = false): void {
  const lock = config.main.get("lock");
  if (lock !== undefined && !skipsLock) throw new PveError(`VM is locked (${lock})`);
}

export function demandDigest(call: Call): void {
  const { digest } = call.parameters;
  if (digest === undefined) return;
  if (digest !== call.cluster.digest(call.node, vmidOf(call))) {
    throw new PveError(call.cluster.quirks.checksumMismatch);
  }
}

/** The flock of a guest on its node. */
export function guestLock(
  node: string,
  vmid: number,
  { timeoutMs = 10_000, isShared = false }: { timeoutMs?: number; isShared?: boolean } = {},
): LockRequest {
  const file = `/var/lock/qemu-server/lock-${vmid}.conf`;
  const timeoutText = `can't lock file '${file}' - got timeout`;
  return { key: `${node}:${file}`, isShared, timeoutMs, timeoutText };
}

/** An endpoint without steps of its own. */
export function immediate(answer: (call: Call) => unknown): Endpoint {
  // oxlint-disable-next-line require-yield -- an answer that takes no time has no step in it
  return function* (call) {
    return answer(call);
  };
}
