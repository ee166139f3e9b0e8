import type { Orphan } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import { isHeld } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isLedgerStranded } from "./extent.ts";
import type { Find } from "./find.ts";
import { isDiskHolder } from "./holders.ts";
import { observationOf } from "./observation.ts";
import { recordOf } from "./record.ts";
import { isDeclared, type SweepDeps } from "./sweep-deps.ts";

/** Kinds that the policy may delete: what holds a person's data only if it is proven ours. */
const deletable: ReadonlySet<string> = new Set(["Machine", "Volume", "ISO"]);

/**
 * Chooses what the policy lets go until the next sweep: one thing, that on which work goes on, or
 * of those that nothing has stopped yet the one that was found first. Those that cannot go take
 * turns, so that none holds up the others. None while anything looks suspicious, or did so within
 * the grace time. All of it follows from what is recorded, so each process chooses the same.
 */
export function chooseByPolicy(
  connection: Connection,
  deps: SweepDeps,
  finds: ReadonlyMap<string, Find>,
): string | undefined {
  const { policy, sweepSeconds } = connection.spec.orphans;
  if (!guard("policy-asked-for", policy !== "Report")) return undefined;
  if (!guard("policy-after-grace", !isQuiet(connection, deps))) return undefined;
  if (!guard("policy-ledger-not-stranded", !isStranded(connection, deps))) return undefined;
  const all = candidates(connection, deps, finds);
  const begun = all.find(({ status }) => status?.operation && !status.operation.outcome);
  const [first] = all.filter((orphan) => !isStopped(orphan)).toSorted(byAge);
  const stopped = all.filter(isStopped).toSorted(byAge);
  const round = Math.floor(deps.clock.nowMs() / (sweepSeconds * 1000));
  const chosen = begun ?? first ?? stopped[round % stopped.length];
  return chosen?.metadata.name;
}

/** It was tried, and could not go. */
function isStopped({ status }: Orphan): boolean {
  return status?.failure !== undefined || status?.waitingFor !== undefined;
}

function byAge(left: Orphan, right: Orphan): number {
  const [a, b] = [ageKey(left), ageKey(right)];
  return a < b ? -1 : 1;
}

function ageKey({ metadata, status }: Orphan): string {
  return `${status?.firstSeenAt ?? metadata.creationTimestamp ?? ""} ${metadata.name ?? ""}`;
}

/** What was suspicious is recorded. Where nothing is recorded yet, nobody knows what was. */
function isQuiet({ name, spec }: Connection, { clock, hypervisors }: SweepDeps): boolean {
  const nowMs = clock.nowMs();
  const { sinceMs, suspicion } = recordOf(hypervisors.get(name), nowMs);
  const graceMs = spec.orphans.graceSeconds * 1000;
  return nowMs - Math.max(sinceMs, suspicion?.sinceMs ?? sinceMs) < graceMs;
}

function isStranded({ systemId }: Connection, deps: SweepDeps): boolean {
  const all = deps.claims.byIndex("system", systemId);
  const held = all.filter((claim) => isHeld(claim.spec) && !isDiskHolder(claim.spec));
  const stranded = held.filter((claim) => !isDeclared(deps, claim.spec));
  return isLedgerStranded(held.length, stranded.length);
}

function candidates(
  { name, spec: { orphans: said } }: Connection,
  deps: SweepDeps,
  finds: ReadonlyMap<string, Find>,
): Orphan[] {
  const owned: ReadonlySet<string> = new Set(
    said.policy === "DeleteProbable" ? ["Ours", "Probable"] : ["Ours"],
  );
  const orphans = deps.orphans.byIndex("hypervisor", name);
  const kept = new Set(orphans.filter(isKeptMachine).map(({ status }) => status?.claim));
  return orphans.filter((orphan) => {
    const { metadata, spec } = orphan;
    const { decision } = spec;
    const find = finds.get(metadata.name ?? "");
    if (find === undefined || !guard("policy-undecided", decision === undefined)) return false;
    // What is left of a machine that a person keeps is kept with it.
    return (
      guard("policy-as-reported", isAsReported(orphan, find)) &&
      guard("policy-proven-ours", owned.has(find.ownership)) &&
      guard("policy-destroy-allowed", find.allowed.includes("Destroy")) &&
      guard("policy-deletable-kind", deletable.has(find.kind)) &&
      guard("policy-not-kept", !kept.has(find.claim))
    );
  });
}

/** What has been replaced since it was reported is reported first, and is for the next sweep. */
function isAsReported(orphan: Orphan, find: Find): boolean {
  const { observation } = orphan.status ?? {};
  return observation === undefined || observation === observationOf(orphan, find);
}

/** With a machine all of it is kept, also where somebody took the machine from its disks. */
export function isKeptMachine({ spec, status }: Orphan): boolean {
  return spec.decision === "Keep" && spec.kind === "Machine" && status?.claim !== undefined;
}
