import type { ClaimSpec } from "../../api/index.ts";
import { proposeNames, shapeDifferences } from "../../hypervisor/index.ts";
import type { Failure, ForeignSeen, Machine, Seen } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { guard } from "../../kernel/guard.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Reservation } from "../claims/index.ts";
import type { Desired } from "./desired.ts";
import { failVm } from "./failing.ts";
import { lostOf } from "./made-elsewhere.ts";
import {
  fieldChange,
  planOfChanges,
  powerChanges,
  sizeChanges,
  type Plan,
} from "./plan-changes.ts";
import { annotationOf, writeView, type ConnectedTurn } from "./turn.ts";

const approvalMs = 60_000;
/** Nodes that are searched for volumes: each costs a call for every storage that it has. */
const searchMax = 16;

/** A machine that stands already and is to become this object's. */
interface Candidate {
  readonly machine: Machine;
  readonly claim: ClaimSpec;
  /** What is known of it from before, and stays known. */
  readonly kept: NonNullable<Reservation["kept"]>;
}

/** What there is to take over: nothing, a machine, or a reason to do neither yet. */
export type Takeover =
  | { readonly is: "nothing" }
  | {
      readonly is: "machine";
      readonly reservation: Pick<Reservation, "identity" | "externalId" | "node" | "kept">;
    }
  | { readonly is: "outcome"; readonly outcome: Outcome };

/**
 * A machine to adopt, or the one that this installation let go of for an object of this name. It is
 * taken over as it is; where it differs from what is declared, nothing is written, not even its
 * mark, until a person has approved exactly these changes.
 */
export async function findTakeover(
  turn: ConnectedTurn,
  desired: Desired,
  { draft, isReleased }: { readonly draft: ClaimSpec; readonly isReleased: boolean },
): Promise<Takeover> {
  // One that another run of this installation released is in no Claim: it is taken as it is found.
  const isAdopted = turn.vm.spec.adopt !== undefined;
  const reasons: ForeignSeen["reason"][] = isAdopted ? ["Stranger", "Released"] : ["Released"];
  const found =
    isAdopted || isReleased
      ? await findAdoptable(turn, draft, reasons)
      : await findReleased(turn, draft);
  if (found === undefined) return { is: "nothing" };
  if ("category" in found) return { is: "outcome", outcome: await failVm(turn, found) };
  const named = await withNames(turn, desired, found);
  const plan = planOf(turn, desired, { ...found, machine: named });
  const refusal = refusalOf(found, plan);
  if (refusal !== undefined) return { is: "outcome", outcome: await failVm(turn, refusal) };
  const isApproved = annotationOf(turn.vm.metadata, "approve") === plan.hash;
  if (!guard("takeover-approved", plan.changes.length === 0 || isApproved)) {
    return { is: "outcome", outcome: await waitForApproval(turn, plan) };
  }
  const { machine, claim, kept } = found;
  const { externalId, node } = machine;
  const identity = machine.identity ?? claim.identity;
  return { is: "machine", reservation: { identity, externalId, node, kept } };
}

/** The one machine that was let go of for this name, if it is still there and nobody's. */
async function findReleased(
  { vm, deps, driver }: ConnectedTurn,
  draft: ClaimSpec,
): Promise<Candidate | Failure | undefined> {
  const { externalId } = vm.spec;
  const claims = deps.ledger
    .releasedBy(draft)
    .filter(({ spec }) => externalId === undefined || spec.externalId === externalId);
  const found: Candidate[] = [];
  for (const { spec } of claims) {
    const seen = await driver.observe(spec, {});
    if (seen.at === "unknown") return seen.failure;
    // One that was let go in its sleep still bears our mark as it was.
    const isAsleep = seen.at === "ours";
    const machine = isAsleep ? seen.machine : foreignMachine(seen, ["Released"]);
    if (machine === undefined) continue;
    const { origin, volumes = [], otherVolumes = [], driver: notes, idChosenBy } = spec;
    const listed = { otherVolumes, ...(notes === undefined ? {} : { driver: notes }) };
    const kept = {
      origin,
      volumes: volumes.map(asBefore),
      ...listed,
      idChosenBy,
      everExisted: true,
    };
    found.push({ machine, claim: spec, kept });
  }
  return guard("takeover-of-one-vm", found.length === 1) ? found[0] : undefined;
}

/** No operation for the new Claim made it: it is older than that. */
function asBefore({ madeBy: _madeBy, ...volume }: ClaimVolume): ClaimVolume {
  return volume;
}

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

async function findAdoptable(
  turn: ConnectedTurn,
  draft: ClaimSpec,
  reasons: readonly ForeignSeen["reason"][],
): Promise<Candidate | Failure | undefined> {
  const { deps, driver } = turn;
  const holder = await deps.ledger.holder(draft);
  if (holder !== undefined) return notAdoptable(draft, "another object has it");
  const seen = await driver.observe(draft, {});
  const machine = foreignMachine(seen, reasons) ?? lostMachine(turn, draft, seen);
  if (machine !== undefined) {
    return { machine, claim: draft, kept: { origin: "Adopted", everExisted: true } };
  }
  switch (seen.at) {
    case "unknown":
      return seen.failure;
    case "absent":
      return turn.vm.spec.adopt === "Only" ? noMachine(turn, draft) : undefined;
    case "opaque":
      return notAdoptable(draft, "it is being made or destroyed");
    case "foreign":
      return notAdoptable(draft, seen.detail);
    case "ours":
      return undefined;
  }
}

function foreignMachine(
  seen: Seen,
  reasons: readonly ForeignSeen["reason"][],
): Machine | undefined {
  return seen.at === "foreign" && reasons.includes(seen.reason) ? seen.machine : undefined;
}

/** One that this installation created for this name, and that Claims of before a rollback lack. */
function lostMachine({ vm }: ConnectedTurn, draft: ClaimSpec, seen: Seen): Machine | undefined {
  if (vm.spec.adopt === undefined || seen.at !== "foreign") return undefined;
  return lostOf(draft, seen);
}

/** The machine with the names that its parts are going to have. */
async function withNames(
  { driver }: ConnectedTurn,
  { shape }: Desired,
  { machine, claim }: Candidate,
): Promise<Machine> {
  if (machine.mark !== undefined) return machine;
  const seen = await driver.observe(claim, { names: proposeNames(shape, machine) });
  return (seen.at === "foreign" ? seen.machine : undefined) ?? machine;
}

/** What would change, by field, and the name of exactly that. Pure but for the driver's table. */
function planOf({ driver, vm }: ConnectedTurn, desired: Desired, { machine }: Candidate): Plan {
  const differences = shapeDifferences(desired.shape, machine.shape);
  const changeOf: typeof driver.changeOf = (path) => driver.changeOf(path, machine);
  return planOfChanges(machine, [
    ...differences.map((difference) => fieldChange(difference, machine, changeOf)),
    ...sizeChanges(desired, machine),
    ...powerChanges(vm.spec, machine),
  ]);
}

/** What no approval can bring about: it is said before the machine is anybody's. */
function refusalOf({ machine }: Candidate, { changes }: Plan): Failure | undefined {
  const refused = changes.filter(({ effect }) => effect === "Refused");
  if (refused.length === 0) return undefined;
  const fields = refused.map(({ field, from = "nothing" }) => `${field} (it has ${from})`);
  const is = `The machine ${machine.externalId} stands, and this cannot be changed in place`;
  return {
    category: "ReplacementRequired",
    message: `${is}: ${fields.join(", ")}. Nothing was taken over or changed.`,
    remedy: "Declare these fields as the machine has them, or give the object another name and id.",
  };
}

async function waitForApproval(turn: ConnectedTurn, plan: Plan): Promise<Outcome> {
  const name = `approval of the changes: set the annotation berth.dev/approve to ${plan.hash}`;
  const waitingFor = { kind: "Approval", name } as const;
  await writeView(turn, { state: { is: "waiting", waitingFor }, plan });
  return again("Approval", approvalMs);
}

/** Volumes under the id are no machine: they are named, and nothing is made over them. */
async function noMachine(turn: ConnectedTurn, draft: ClaimSpec): Promise<Failure> {
  const { externalId, hypervisor } = draft;
  const volumes = await volumesUnder(turn, draft);
  if (volumes.length > 0) return onlyVolumes(draft, volumes);
  return {
    category: "DependencyNotReady",
    message: `There is no machine ${externalId} on ${hypervisor.name} to adopt.`,
    remedy:
      "Correct spec.externalId. Or set adopt: IfPresent and say spec.source, and Berth makes one.",
  };
}

/** A machine that is not there is on no node: its volumes may be on any. */
async function volumesUnder(turn: ConnectedTurn, draft: ClaimSpec): Promise<string[]> {
  const found = new Set<string>();
  for (const node of nodesToSearch(turn, draft)) {
    const leftovers = await turn.driver.leftovers({ ...draft, node });
    if (leftovers.ok) for (const { volume } of leftovers.value) found.add(volume);
  }
  return [...found].toSorted();
}

function nodesToSearch({ connection, vm }: ConnectedTurn, { node }: ClaimSpec): string[] {
  const { node: only, nodes: named = only === undefined ? undefined : [only] } =
    vm.spec.placement ?? {};
  const healthy = connection.inventory.nodes
    .filter(({ name, health }) => health === "Healthy" && (named?.includes(name) ?? true))
    .map(({ name }) => name);
  return [...new Set([...(node === undefined ? [] : [node]), ...healthy])].slice(0, searchMax);
}

function onlyVolumes({ externalId, hypervisor }: ClaimSpec, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `There is no machine ${externalId} on ${hypervisor.name} to adopt, only volumes of an ` +
      `earlier one: ${listText(volumes)}. With adopt: Only none is ever made.`,
    remedy:
      "To make a machine, set adopt: IfPresent and say its source; to keep the data of a volume, " +
      "take it as source.importedDisk with mode: Take. What nobody needs: " +
      `berth orphans destroy ${listText(volumes, " ")}.`,
  };
}

function notAdoptable({ externalId, hypervisor }: ClaimSpec, why: string): Failure {
  return {
    category: "IdentityConflict",
    message: `The machine ${externalId} on ${hypervisor.name} cannot be adopted: ${why}.`,
    remedy: "Choose another spec.externalId.",
  };
}
