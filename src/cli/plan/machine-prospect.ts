import { annotations, type Claim, type VirtualMachine } from "../../api/index.ts";
import { dialectOf } from "../../app/index.ts";
import { previewNewVm, previewVm } from "../../controllers/virtual-machine/index.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { claimOf } from "./claim.ts";
import { declarationOf, gather, type Gathered, type Surroundings } from "./declaration.ts";
import { fieldDifferences, metadataDifferences, objectDifferences, planOf } from "./differences.ts";
import type { Planning, Prospect } from "./prospect.ts";

/** What becomes of a machine, with what each change costs as far as that can be told. */
export async function machineProspect(
  planning: Planning,
  after: VirtualMachine,
): Promise<Prospect> {
  const { before } = planning;
  const gathered = await gather(planning.lookBeyond, after);
  if (gathered.is === "missing") return uncosted(planning, gathered.what.join("; "));
  const { around } = gathered;
  const dialect = dialectOf(around.hypervisor);
  if (dialect === undefined) return uncosted(planning, "this type has no driver yet");
  // cast: the server admitted it by the schema of this kind, earlier.
  const old = before as unknown as VirtualMachine | undefined;
  const found = old && (await claimOf(planning.look, old));
  if (before !== undefined && old !== undefined && found !== undefined) {
    if (found.is === "forbidden") return unjudged(planning, { old, gathered, why: found.why });
    return standingProspect(planning, { old, after, before, around, claim: found.claim });
  }
  const failure = previewNewVm(declarationOf(after, around, true), dialect);
  if (failure !== undefined) return { how: "refused", why: failure.message };
  return uncosted(planning, "");
}

interface Unread {
  readonly old: VirtualMachine;
  readonly gathered: Gathered;
  readonly why: string;
}

/** An edit of a machine of which too little may be read to tell whether it would be refused. */
async function unjudged(planning: Planning, { old, gathered, why }: Unread): Promise<Prospect> {
  const known = await gather(planning.look, old);
  const isSame = JSON.stringify(formOf(known)) === JSON.stringify(formOf(gathered));
  const prospect = uncosted(planning, `what this costs cannot be told: ${why}`);
  const isUnchanged = isSame && prospect.how === "unchanged";
  return isUnchanged ? { how: "unchanged" } : { ...prospect, how: "unknown" };
}

/** What others give to the form of a machine. */
function formOf(gathered: Gathered): unknown {
  if (gathered.is === "missing") return gathered.what;
  const { hypervisor, vmClass, networks } = gathered.around;
  return [hypervisor.spec, vmClass?.spec, [...networks].map(([name, { spec }]) => [name, spec])];
}

/** What differs, where nothing is known of what that costs. */
function uncosted({ before, after }: Planning, note: string): Prospect {
  const why = note === "" ? {} : { why: note };
  if (before === undefined) return { how: "created", ...why };
  const changes = objectDifferences(before, after);
  if (changes.length === 0) return { how: "unchanged", ...why };
  return { how: "changed", plan: planOf(changes), ...why };
}

interface Standing {
  readonly old: VirtualMachine;
  readonly after: VirtualMachine;
  /** The old one, as the server gave it. */
  readonly before: KubeObject;
  readonly around: Surroundings;
  readonly claim: Claim;
}

async function standingProspect(planning: Planning, standing: Standing): Promise<Prospect> {
  const { old, after, before, around, claim } = standing;
  const dialect = dialectOf(around.hypervisor);
  if (dialect === undefined) return uncosted(planning, "");
  const known = await gather(planning.look, old);
  const { plan, refusal } = previewVm({
    before: declarationOf(old, known.is === "whole" ? known.around : around, false),
    after: declarationOf(after, around, false),
    claim: claim.spec,
    dialect,
    nowMs: planning.nowMs,
  });
  const own = [...wordChanges(before, planning.after), ...policyChanges(old, after)];
  const edited = objectDifferences(before, planning.after);
  const all = [...plan.changes, ...own];
  const changes = all.length > 0 ? all : edited;
  const shown = plan.changes.length > 0 ? { ...plan, changes } : planOf(changes);
  if (refusal !== undefined) return { how: "refused", plan: shown, why: refusal.message };
  if (changes.length === 0) return { how: "unchanged", ...notesOf(old, after) };
  if (edited.length === 0 && isLeftAlone(after)) return leftAlone(plan.changes, after);
  return { how: "changed", plan: shown, ...notesOf(old, after) };
}

/** Nobody edited the object itself: what its class or network says otherwise is drift to it. */
function isLeftAlone({ spec }: VirtualMachine): boolean {
  return spec.driftPolicy !== "Correct";
}

function leftAlone(changes: readonly { field: string }[], { spec }: VirtualMachine): Prospect {
  const fields = changes.map(({ field }) => field).join(", ");
  const why = `its class or network would say otherwise (${fields}), and with driftPolicy`;
  return { how: "unchanged", why: `${why} ${spec.driftPolicy} the machine stays as it is` };
}

/** What is shown here rests on the last generation having been applied, and on nobody's hands. */
function notesOf({ status, metadata }: VirtualMachine, after: VirtualMachine): { why?: string } {
  if (after.metadata.annotations?.[annotations.paused] === "true") {
    return { why: "it is paused: nothing is done to the machine until it is resumed" };
  }
  const drifted = status?.conditions?.find(({ reason }) => reason === "Drifted");
  if (drifted !== undefined) return { why: drifted.message };
  const isApplied = status?.appliedGeneration === metadata.generation;
  return isApplied ? {} : { why: "an earlier edit is not wholly applied yet, and is not shown" };
}

/** Labels and annotations. Of these only the word to restart is noticed by the machine. */
function wordChanges(before: KubeObject, after: KubeObject): JsonObject[] {
  const restart = `metadata.annotations[${annotations.restartAt}]`;
  return metadataDifferences(before, after).map((change) => {
    const isRestart = change["field"] === restart && change["to"] !== "nothing";
    return { ...change, effect: isRestart ? "Reboot" : "Live" };
  });
}

/** Fields that only say how Berth behaves; the machine does not notice. */
const policyFields = [
  "updatePolicy",
  "driftPolicy",
  "onMissing",
  "shutdown",
  "deletionPolicy",
  "placement",
  "externalId",
  "adopt",
] as const;

function policyChanges({ spec: old }: VirtualMachine, { spec }: VirtualMachine): JsonObject[] {
  const kind = "VirtualMachine";
  const fields = policyFields.map((field) => {
    return fieldDifferences({ kind, field: `spec.${field}` }, old[field], spec[field]);
  });
  const kept = (spec.disks ?? []).map(({ name, onDelete }) => {
    const was = old.disks?.find((disk) => disk.name === name);
    const field = `spec.disks[${name}].onDelete`;
    return was === undefined ? [] : fieldDifferences({ kind, field }, was.onDelete, onDelete);
  });
  const changes = [...fields, ...kept].flatMap((found) => [...found]);
  return changes.map((change) => ({ ...change, effect: "Live" }));
}
