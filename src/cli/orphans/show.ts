import type { Orphan } from "../../api/index.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import { humanAge } from "../../kernel/human-duration.ts";
import type { Call } from "../command.ts";
import { alignRows } from "../objects/table.ts";
import { bytesOf } from "./orphans.ts";

const header = ["HYPERVISOR", "KIND", "ID", "OWNERSHIP", "SIZE", "AGE", "DECISION", "STATUS"];

/** A row for each, and what they take together. */
export function showRows(call: Call, orphans: readonly Orphan[], nowMs: number): void {
  if (orphans.length === 0) return call.terminal.note("Nothing was found that is not declared.");
  const rows = orphans.map((orphan) => {
    const { spec, status } = orphan;
    return [
      spec.hypervisor,
      spec.kind,
      spec.externalId,
      status?.ownership ?? "",
      humanBytes(bytesOf(orphan)),
      ageText(orphan, nowMs),
      spec.decision ?? "",
      reasonOf(orphan),
    ];
  });
  const lines = alignRows(call.flag("no-headers") ? rows : [header, ...rows]);
  for (const line of lines) call.terminal.print(line);
  call.terminal.note(totalText(orphans));
}

/** All that is known of each: what it is, why it counts as that, and what may be decided. */
export function showWhole(call: Call, orphans: readonly Orphan[], nowMs: number): void {
  for (const [index, orphan] of orphans.entries()) {
    if (index > 0) call.terminal.print("");
    for (const line of linesOf(orphan, nowMs)) call.terminal.print(line);
  }
}

function linesOf(orphan: Orphan, nowMs: number): string[] {
  const { spec, status = {} } = orphan;
  const { evidence = [], blocks = [], allowedDecisions = [] } = status;
  const where = [spec.hypervisor, status.node, status.storage].filter((part) => part);
  const decided = spec.decision && `${spec.decision}, ${messageOf(orphan)}`;
  return [
    `${spec.kind} ${spec.externalId} on ${where.join(", ")}`,
    ...said("whose", status.ownership ?? "not known yet"),
    ...said("size", `${humanBytes(bytesOf(orphan))}, age ${ageText(orphan, nowMs)}`),
    ...said("created", status.createdAt),
    ...said("power", status.powerState),
    ...evidence.flatMap((text) => said("why", text)),
    ...blocks.flatMap((key) => said("blocks", key)),
    ...said("may be", allowedDecisions.join(", ")),
    ...said("by hand", status.command),
    ...said("decided", decided),
  ];
}

function said(what: string, text: string | undefined): string[] {
  return text === undefined ? [] : [`  ${`${what}:`.padEnd(9)}${text}`];
}

/** How many there are and what they take; what was destroyed is told, and takes nothing more. */
export function totalText(orphans: readonly Orphan[]): string {
  const there = orphans.filter(({ status }) => status?.reclaimed === undefined);
  const gone = orphans.filter(({ status }) => status?.reclaimed !== undefined);
  const bytes = there.reduce((sum, orphan) => sum + bytesOf(orphan), 0);
  const freed = gone.reduce((sum, { status }) => sum + Number(status?.reclaimed), 0);
  const count = there.length === 1 ? "1 orphan" : `${there.length} orphans`;
  const more =
    gone.length === 0 ? "" : `; ${gone.length} destroyed, ${humanBytes(freed)} reclaimed`;
  return `${count}, ${humanBytes(bytes)} (${bytes} bytes)${more}`;
}

export function reasonOf(orphan: Orphan): string {
  return readyOf(orphan)?.reason ?? "";
}

export function messageOf(orphan: Orphan): string {
  return readyOf(orphan)?.message ?? "not looked at yet";
}

function readyOf({ status }: Orphan): { reason: string; message: string } | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready");
}

function ageText({ metadata, status }: Orphan, nowMs: number): string {
  return humanAge(status?.firstSeenAt ?? metadata.creationTimestamp, nowMs);
}
