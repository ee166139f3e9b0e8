import type { PveReply } from "../../drivers/proxmox/index.ts";
import type { Site } from "./site.ts";

/**
 * How a request for a change ended, for all that its sender can find out. `words` are those of the
 * hypervisor without numbers: the same words are the same failure.
 */
export type AttemptEnd =
  | { readonly is: "done"; readonly atMs: number }
  | { readonly is: "failed"; readonly atMs: number; readonly words: string }
  /** A lock was in its way. */
  | { readonly is: "blocked" }
  /** The VM is not as it was when the request was made up. */
  | { readonly is: "changed" }
  /** Its task goes on. */
  | { readonly is: "running" }
  /** No answer came, or nobody remembers the task. */
  | { readonly is: "unknown" };

const unknown: AttemptEnd = { is: "unknown" };

const blockedWords = /is locked \(|got timeout|got lock request timeout|-locked command timed out/;
const changedWords =
  /checksum miss?match|modified configuration|does not exist|VM \d+ (?:is )?not running/;
const changedAlso = /is running - destroy failed/;
/** It is as it should be already. */
const doneWords = /already running|hotplug problem - /;
/** What a proxy says; of it nobody knows whether the request arrived. */
const inBetween: ReadonlySet<number> = new Set([429, 502, 503, 595, 596, 599]);

/** By the answer that came, if any, and by its task. */
export function endOf(site: Site, reply: PveReply | undefined, answeredMs: number): AttemptEnd {
  if (reply?.type !== "answered" || inBetween.has(reply.status)) return unknown;
  if (reply.status !== 200) return endBy(`${reply.reason} ${reply.body}`, answeredMs);
  // A reply that breaks off tells nothing.
  if (!reply.body.endsWith("}")) return unknown;
  const upid = /"data":"(UPID:[^"]+)"/.exec(reply.body)?.[1];
  return upid === undefined ? { is: "done", atMs: answeredMs } : endOfTask(site, upid);
}

function endOfTask(site: Site, upid: string): AttemptEnd {
  const tasks = site.model.cluster.state.nodes.flatMap((node) => node.tasks);
  const task = tasks.find((one) => one.upid === upid);
  if (task === undefined) return unknown;
  const { exitStatus, endMs } = task;
  if (exitStatus === undefined || endMs === undefined) return { is: "running" };
  const isWell = exitStatus === "OK" || exitStatus.startsWith("WARNINGS: ");
  return isWell ? { is: "done", atMs: endMs } : endBy(exitStatus, endMs);
}

function endBy(text: string, atMs: number): AttemptEnd {
  if (blockedWords.test(text)) return { is: "blocked" };
  if (doneWords.test(text)) return { is: "done", atMs };
  if (changedWords.test(text) || changedAlso.test(text)) return { is: "changed" };
  return { is: "failed", atMs, words: text.replaceAll(/\d+/g, "N") };
}
