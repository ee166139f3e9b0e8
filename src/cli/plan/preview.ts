import { createHash } from "node:crypto";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import { dialectOf } from "../../app/index.ts";
import { previewNewVm, previewVm } from "../../controllers/virtual-machine/index.ts";
import { isJsonObject, jsonEqual, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { ServedKind } from "../objects/discovery.ts";
import type { Server } from "../objects/server.ts";
import { claimOf } from "../why/claim.ts";
import { declarationOf, gather, type Surroundings } from "./declaration.ts";

/** What applying one document would do. */
export interface Prospect {
  readonly how: "created" | "changed" | "unchanged" | "refused";
  readonly plan?: JsonObject;
  /** Why nothing would be done, or what could not be told. */
  readonly why?: string;
}

export interface Planning {
  readonly server: Server;
  readonly served: readonly ServedKind[];
  /** As it is on the server; undefined where there is none. */
  readonly before: KubeObject | undefined;
  /** As the server itself would store it. */
  readonly after: KubeObject;
  readonly nowMs: number;
}

/** The prospect of one document that the server would admit. */
export async function prospectOf(planning: Planning): Promise<Prospect> {
  const { before, after } = planning;
  if (after.kind === "VirtualMachine") return machineProspect(planning);
  if (before === undefined) return { how: "created" };
  const changes = [...specChanges("spec", before["spec"], after["spec"])];
  if (changes.length === 0) return { how: "unchanged" };
  const hash = createHash("sha256").update(JSON.stringify(changes)).digest("hex").slice(0, 16);
  return { how: "changed", plan: { hash, changes } };
}

async function machineProspect(planning: Planning): Promise<Prospect> {
  const { server, served, before } = planning;
  // cast: the server admitted it by the schema of this kind.
  const after = planning.after as unknown as VirtualMachine;
  // cast: and this one earlier.
  const old = before as unknown as VirtualMachine | undefined;
  const gathered = await gather(server, served, after);
  if (gathered.is === "missing") {
    return { how: old === undefined ? "created" : "changed", why: gathered.what.join("; ") };
  }
  const dialect = dialectOf(gathered.around.hypervisor);
  if (dialect === undefined) return { how: "changed", why: "this type has no driver yet" };
  const claim = old === undefined ? undefined : await claimOf(server, served, planning.after);
  if (old === undefined || claim === undefined || before === undefined) {
    const failure = previewNewVm(declarationOf(after, gathered.around, true), dialect);
    if (failure !== undefined) return { how: "refused", why: failure.message };
    return { how: old === undefined ? "created" : specHow(planning) };
  }
  return standingProspect(planning, { old, after, around: gathered.around, claim });
}

interface Standing {
  readonly old: VirtualMachine;
  readonly after: VirtualMachine;
  readonly around: Surroundings;
  readonly claim: KubeObject;
}

async function standingProspect(
  planning: Planning,
  { old, after, around, claim }: Standing,
): Promise<Prospect> {
  const { server, served, nowMs } = planning;
  const dialect = dialectOf(around.hypervisor);
  const known = await gather(server, served, old);
  if (dialect === undefined) return { how: specHow(planning) };
  const aroundOld = known.is === "whole" ? known.around : around;
  const { plan, refusal } = previewVm({
    before: declarationOf(old, aroundOld, false),
    after: declarationOf(after, around, false),
    // cast: the server admitted it by the schema of its kind.
    claim: (claim as unknown as Claim).spec,
    dialect,
    nowMs,
  });
  const own = [...policyChanges(old, after)];
  const changes = [...plan.changes, ...own];
  if (refusal !== undefined)
    return { how: "refused", plan: { ...plan, changes }, why: refusal.message };
  if (changes.length === 0) return { how: specHow(planning), ...notesOf(old) };
  return { how: "changed", plan: { ...plan, changes }, ...notesOf(old) };
}

function specHow({ before, after }: Planning): "changed" | "unchanged" {
  return jsonEqual(before?.["spec"] ?? null, after["spec"] ?? null) ? "unchanged" : "changed";
}

/** What is shown here rests on the last generation having been applied, and on nobody's hands. */
function notesOf({ status, metadata }: VirtualMachine): { why?: string } {
  const drifted = status?.conditions?.find(({ reason }) => reason === "Drifted");
  if (drifted !== undefined) return { why: drifted.message };
  const isApplied = status?.appliedGeneration === metadata.generation;
  return isApplied ? {} : { why: "an earlier edit is not wholly applied yet, and is not shown" };
}

/** Fields that only say how Berth behaves; the machine does not notice. */
const policyFields = [
  "updatePolicy",
  "driftPolicy",
  "onMissing",
  "shutdown",
  "deletionPolicy",
  "placement",
] as const;

function* policyChanges(old: VirtualMachine, after: VirtualMachine): Iterable<JsonObject> {
  for (const field of policyFields) {
    yield* specChanges(`spec.${field}`, old.spec[field], after.spec[field]);
  }
}

/** Fields of two specs that differ, down to what is no map. */
function* specChanges(field: string, before: unknown, after: unknown): Iterable<JsonObject> {
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      yield* specChanges(`${field}.${key}`, before[key], after[key]);
    }
    return;
  }
  const from = JSON.stringify(before) ?? "nothing";
  const to = JSON.stringify(after) ?? "nothing";
  if (from !== to) yield { field, from, to, effect: "Live" };
}
