import type { Orphan } from "../../api/index.ts";
import { type Call, CommandError, exitCodes } from "../command.ts";
import { followObject } from "../objects/follow-object.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import type { Machine } from "../objects/machine.ts";
import { objectPath } from "../objects/paths.ts";
import type { Server } from "../objects/server.ts";
import type { Orphans } from "./orphans.ts";
import { messageOf, reasonOf, sizeText } from "./show.ts";

export interface Deciding {
  readonly call: Call;
  readonly machine: Machine;
  readonly server: Server;
  readonly orphans: Orphans;
}

/** Writes a person's word: the decision, and the id once more. */
export async function writeDecision(
  { server, orphans }: Deciding,
  { metadata, spec }: Orphan,
  said: Partial<Orphan["spec"]>,
): Promise<void> {
  const at = { kind: orphans.kind, namespace: "", name: metadata.name ?? "" };
  await server.ask({
    method: "PATCH",
    path: objectPath(at),
    contentType: "application/merge-patch+json",
    body: { spec: { adoptAs: null, ...said, confirm: spec.externalId } },
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

/** Waits until each is done, and says what came of it. */
export async function waitForAll(deciding: Deciding, decided: readonly Orphan[]): Promise<number> {
  const { call, machine } = deciding;
  if (!call.flag("wait")) return exitCodes.ok;
  const withinMs = readDurationMs(call.string("timeout") ?? "5m", "timeout");
  const limit = { clock: machine.clock, ...(withinMs > 0 ? { withinMs } : {}) };
  const ending = await untilStopped(call.terminal, limit, async (signal) => {
    return Promise.all(decided.map((orphan) => waitForOne(deciding, orphan, signal)));
  });
  if (ending.how === "done") return ending.result.every(Boolean) ? exitCodes.ok : exitCodes.failed;
  call.terminal.note("berth: not done yet; it goes on. See berth orphans list");
  return exitCodes.failed;
}

/** Whether it came to a good end. */
async function waitForOne(
  { call, server, orphans }: Deciding,
  orphan: Orphan,
  signal: AbortSignal,
): Promise<boolean> {
  const { externalId } = orphan.spec;
  const at = { kind: orphans.kind, namespace: "", name: orphan.metadata.name ?? "" };
  for await (const state of followObject(server, at, signal)) {
    // cast: the server admitted it as an Orphan.
    const now = state as unknown as Orphan | undefined;
    const end = endOf(now);
    if (end === undefined) continue;
    if (end.isGood) call.terminal.print(`${externalId}: ${end.text}`);
    else call.terminal.note(`berth: ${externalId}: ${end.text}`);
    return end.isGood;
  }
  return false;
}

/** How it ended, if it has: gone, destroyed, or stuck until somebody does something. */
function endOf(now: Orphan | undefined): { isGood: boolean; text: string } | undefined {
  if (now === undefined) return { isGood: true, text: "done" };
  const { reclaimed, observedGeneration, conditions = [] } = now.status ?? {};
  if (reclaimed !== undefined) {
    const bytes = Number(reclaimed);
    return { isGood: true, text: `destroyed, ${sizeText(bytes)} (${bytes} bytes) reclaimed` };
  }
  const isStalled = conditions.some(({ type }) => type === "Stalled");
  if (!isStalled || observedGeneration !== now.metadata.generation) return undefined;
  return { isGood: false, text: `${reasonOf(now)}: ${messageOf(now)}` };
}
