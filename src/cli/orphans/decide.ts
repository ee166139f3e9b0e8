import type { Orphan, VirtualMachine } from "../../api/index.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import { type Call, CommandError, exitCodes } from "../command.ts";
import { discover } from "../objects/discovery.ts";
import { followObject } from "../objects/follow-object.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { resolveKind } from "../objects/kinds.ts";
import type { Machine } from "../objects/machine.ts";
import { objectPath } from "../objects/paths.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import type { Orphans } from "./orphans.ts";
import { messageOf, reasonOf } from "./show.ts";

export interface Deciding {
  readonly call: Call;
  readonly machine: Machine;
  readonly server: Server;
  readonly orphans: Orphans;
}

/** Writes a person's word: the decision, the id once more, and what the person was shown. */
export async function writeDecision(
  { server, orphans }: Deciding,
  { metadata, spec, status }: Orphan,
  said: Partial<Orphan["spec"]>,
): Promise<void> {
  const at = { kind: orphans.kind, namespace: "", name: metadata.name ?? "" };
  const observation = status?.observation ?? null;
  await server.ask({
    method: "PATCH",
    path: objectPath(at),
    contentType: "application/merge-patch+json",
    body: { spec: { adoptAs: null, ...said, confirm: spec.externalId, observation } },
  });
}

const takingText =
  ": declare a VirtualMachine that takes it as source.importedDisk with mode: Take";

/** What a decision cannot be about, in one sentence; before anything is written. */
export function refuseUnless(
  orphan: Orphan,
  decision: NonNullable<Orphan["spec"]["decision"]>,
): void {
  const allowed = orphan.status?.allowedDecisions;
  if (allowed === undefined || allowed.includes(decision)) return;
  const { command, powerState } = orphan.status ?? {};
  const { kind, externalId } = orphan.spec;
  const runs = kind === "Machine" && powerState !== "Stopped" ? " while it is not stopped" : "";
  const by = command === undefined ? "" : `. ${command}`;
  const instead = kind === "Volume" && decision === "Adopt" ? takingText : "";
  throw new CommandError(
    `${kind} ${externalId} cannot be decided as ${decision}${runs}${by}${instead}`,
  );
}

/** How it ended, for people. */
interface End {
  readonly isGood: boolean;
  readonly text: string;
}

/**
 * Waits until each is done, and says what came of it. That an Orphan is gone says little, since it
 * goes for other reasons too: `whenGone` says what that means.
 */
export async function waitForAll(
  deciding: Deciding,
  decided: readonly Orphan[],
  whenGone: () => Promise<End>,
): Promise<number> {
  const { call, machine } = deciding;
  if (!call.flag("wait")) return exitCodes.ok;
  const withinMs = readDurationMs(call.string("timeout") ?? "5m", "timeout");
  const limit = { clock: machine.clock, ...(withinMs > 0 ? { withinMs } : {}) };
  const ending = await untilStopped(call.terminal, limit, async (signal) => {
    return Promise.all(
      decided.map(async (orphan) => {
        return tell(call, orphan, await endOfOne(deciding, orphan, { signal, whenGone }));
      }),
    );
  });
  if (ending.how === "done") return ending.result.every(Boolean) ? exitCodes.ok : exitCodes.failed;
  call.terminal.note("berth: not done yet; it goes on. See berth orphans list");
  return exitCodes.failed;
}

/** What was destroyed stays readable as such: one that is gone without that was not. */
export async function goneUndestroyed(): Promise<End> {
  const text =
    "not destroyed by Berth, and no orphan any more: it was declared or let go meanwhile, or " +
    "somebody took it away, or deleted its Orphan";
  return { isGood: false, text };
}

/** An Orphan goes when the object that adopts its machine is there. */
export async function goneAdopted(
  { server }: Deciding,
  { spec: { externalId, hypervisor } }: Orphan,
  at: { readonly namespace: string; readonly name: string },
): Promise<End> {
  const kind = resolveKind(await discover(server), "virtualmachines");
  // cast: the server admitted it as a VirtualMachine.
  const vm = (await findObject(server, { kind, ...at })) as unknown as VirtualMachine | undefined;
  const isIts = vm?.spec.externalId === externalId && vm.spec.hypervisorRef.name === hypervisor;
  if (isIts) return { isGood: true, text: `adopted as ${at.namespace}/${at.name}` };
  return { isGood: false, text: "not adopted, and no orphan any more: see berth orphans list" };
}

function tell({ terminal }: Call, { spec }: Orphan, end: End | undefined): boolean {
  if (end?.isGood === true) terminal.print(`${spec.externalId}: ${end.text}`);
  else if (end !== undefined) terminal.note(`berth: ${spec.externalId}: ${end.text}`);
  return end?.isGood === true;
}

interface Waiting {
  readonly signal: AbortSignal;
  readonly whenGone: () => Promise<End>;
}

async function endOfOne(
  { server, orphans }: Deciding,
  orphan: Orphan,
  { signal, whenGone }: Waiting,
): Promise<End | undefined> {
  const at = { kind: orphans.kind, namespace: "", name: orphan.metadata.name ?? "" };
  for await (const state of followObject(server, at, signal)) {
    // cast: the server admitted it as an Orphan.
    const now = state as unknown as Orphan | undefined;
    const end = now === undefined ? await whenGone() : endOf(now);
    if (end !== undefined) return end;
  }
  return undefined;
}

/** How it ended, if it has: destroyed, or stuck until somebody does something. */
function endOf(now: Orphan): End | undefined {
  const { reclaimed, observedGeneration, conditions = [] } = now.status ?? {};
  if (reclaimed !== undefined) {
    const bytes = Number(reclaimed);
    return { isGood: true, text: `destroyed, ${humanBytes(bytes)} (${bytes} bytes) reclaimed` };
  }
  const isStalled = conditions.some(({ type }) => type === "Stalled");
  if (!isStalled || observedGeneration !== now.metadata.generation) return undefined;
  return { isGood: false, text: `${reasonOf(now)}: ${messageOf(now)}` };
}
