import type { Orphan } from "../../api/index.ts";
import { isHeld } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isLedgerStranded } from "./extent.ts";
import type { SweepMemory } from "./memory.ts";
import { isKeeper } from "./plan.ts";
import { isDeclared, type SweepDeps } from "./sweep-deps.ts";

/** Kinds that the policy may delete: what holds a person's data only if it is proven ours. */
const deletable: ReadonlySet<string> = new Set(["Machine", "Volume", "ISO"]);

/**
 * Chooses what the policy lets go until the next sweep: one thing, of those that were not tried yet
 * the one that was found first, then the one that was tried longest ago, so that one that cannot go
 * does not hold up the others. None while anything looks suspicious, or may have looked so before
 * this process began.
 */
export function chooseByPolicy(
  connection: Connection,
  deps: SweepDeps,
  memory: SweepMemory,
): string | undefined {
  if (connection.spec.orphans.policy !== "DeleteOwned") return undefined;
  if (isQuiet(connection, deps, memory) || isStranded(connection, deps)) return undefined;
  const { sightings, tried } = memory;
  const names = candidates(connection, deps, memory).map(({ metadata }) => metadata.name ?? "");
  const triedMs = (name: string): number => tried.get(name) ?? 0;
  const firstMs = (name: string): number => sightings.get(name)?.firstMs ?? Infinity;
  const [chosen] = names.toSorted((a, b) => triedMs(a) - triedMs(b) || firstMs(a) - firstMs(b));
  const still = names.flatMap((name) => (tried.has(name) ? [[name, triedMs(name)] as const] : []));
  memory.tried = new Map(still);
  if (chosen !== undefined) memory.tried = new Map([...still, [chosen, deps.clock.nowMs()]]);
  return chosen;
}

/** A suspicion of the process before this one is not known here: it may have been just now. */
function isQuiet({ spec }: Connection, { clock }: SweepDeps, memory: SweepMemory): boolean {
  const { sinceMs = Infinity, quietUntilMs } = memory;
  const graceMs = spec.orphans.graceSeconds * 1000;
  return clock.nowMs() < Math.max(quietUntilMs, sinceMs + graceMs);
}

function isStranded({ systemId }: Connection, deps: SweepDeps): boolean {
  const all = deps.claims.byIndex("system", systemId);
  const held = all.filter((claim) => isHeld(claim.spec) && !isKeeper(claim.spec));
  const stranded = held.filter((claim) => !isDeclared(deps, claim.spec));
  return isLedgerStranded(held.length, stranded.length);
}

function candidates({ name }: Connection, deps: SweepDeps, { finds }: SweepMemory): Orphan[] {
  const orphans = deps.orphans.byIndex("hypervisor", name);
  const kept = new Set(orphans.filter(isKeptMachine).map(({ status }) => status?.claim));
  return orphans.filter(({ metadata, spec: { decision } }) => {
    const find = finds.get(metadata.name ?? "");
    if (find === undefined || decision !== undefined) return false;
    const isOurs = find.ownership === "Ours" && find.allowed.includes("Destroy");
    // What is left of a machine that a person keeps is kept with it.
    return isOurs && deletable.has(find.kind) && !kept.has(find.claim);
  });
}

/** With a machine all of it is kept, also where somebody took the machine from its disks. */
export function isKeptMachine({ spec, status }: Orphan): boolean {
  return spec.decision === "Keep" && spec.kind === "Machine" && status?.claim !== undefined;
}
