import type { VirtualMachine } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { resolveVm } from "./dependencies.ts";
import type { Desired } from "./desired.ts";
import { cloningOf, takesOf } from "./fills.ts";
import type { Declared } from "./next.ts";
import { chooseNode, type Neighbours } from "./placement.ts";
import { combined } from "./reserve.ts";
import { annotationOf, isDeleting, type ConnectedTurn } from "./turn.ts";

export interface Declaring {
  readonly desired: Desired;
  readonly declared: Declared;
}

/** What is declared, as the plan takes it. An object that goes away needs nothing else. */
export async function declare(turn: ConnectedTurn): Promise<Answer<Declaring>> {
  const nothing: Desired = { shape: {}, disks: [] };
  if (isDeleting(turn.vm)) {
    const fate = await fateOf(turn);
    return answered({ desired: nothing, declared: declaredOf(turn, nothing, { node: "", fate }) });
  }
  const node = nodeFor(turn);
  if (!node.ok) return node;
  turn.node = node.value;
  const desired = await resolveVm(turn, node.value);
  if (!desired.ok) return desired;
  const fitted = turn.driver.fit(desired.value.shape);
  if (fitted.refusals.length > 0) return failed(combined(fitted.refusals));
  const fitting = { ...desired.value, shape: fitted.shape };
  const place = { node: node.value, fate: "Retain" } as const;
  return answered({ desired: fitting, declared: declaredOf(turn, fitting, place) });
}

/** Destroyed only if the object says so, and not merely because its kind goes away. */
async function fateOf({ vm, claim, deps }: ConnectedTurn): Promise<"Destroy" | "Retain"> {
  const whenAbsent = claim?.spec.origin === "Adopted" ? "Retain" : "Delete";
  if ((vm.spec.deletionPolicy ?? whenAbsent) === "Retain") return "Retain";
  return (await deps.mayDestroy()) ? "Destroy" : "Retain";
}

/** A node that was chosen stays chosen, wherever the machine has gone since. */
function nodeFor(turn: ConnectedTurn): Answer<string> {
  const { vm, claim } = turn;
  const known = claim?.spec.node;
  if (known !== undefined) return answered(known);
  return choose(turn, vm);
}

/** The hypervisor's own copy is made where its source is. */
function choose(turn: ConnectedTurn, vm: VirtualMachine): Answer<string> {
  const { inventory, spec } = turn.connection;
  const source = cloningOf(turn);
  const node = inventory.machines.find(({ externalId }) => externalId === source?.source)?.node;
  if (source !== undefined && node !== undefined) return answered(node);
  const away = neighboursOf(turn);
  const around = { storageDefault: spec.defaults?.storage };
  return chooseNode(vm, inventory, away === undefined ? around : { ...around, away });
}

/** Where machines run that this one should keep away from, by the labels of their objects. */
function neighboursOf({ vm, key, deps }: ConnectedTurn): Neighbours | undefined {
  const { awayFrom } = vm.spec.placement ?? {};
  if (awayFrom === undefined) return undefined;
  const nodesOf = (policy: "Required" | "Preferred"): Set<string> => {
    const rules = awayFrom.filter((rule) => (rule.policy ?? "Required") === policy);
    const others = deps.lookups.vms.list().filter((other) => {
      const isOther = objectKey(other.metadata) !== key;
      const isHere = other.metadata.namespace === vm.metadata.namespace;
      return isOther && isHere && rules.some(({ matchLabels }) => matches(other, matchLabels));
    });
    return new Set(others.flatMap(({ status }) => (status?.node ? [status.node] : [])));
  };
  return { never: nodesOf("Required"), rather: nodesOf("Preferred") };
}

function matches({ metadata }: VirtualMachine, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([label, value]) => metadata.labels?.[label] === value);
}

function isWellPlaced(
  turn: ConnectedTurn,
  placement: NonNullable<VirtualMachine["spec"]["placement"]>,
  node: string,
): boolean {
  const named = placement.node === undefined ? placement.nodes : [placement.node];
  const isNamed = named?.includes(node) ?? true;
  return isNamed && neighboursOf(turn)?.never.has(node) !== true;
}

/** Another node, where the placement is enforced and this one is not among those allowed. */
function movesTo(turn: ConnectedTurn): string | undefined {
  const { vm, claim } = turn;
  const { placement } = vm.spec;
  if (placement?.mode !== "Enforce" || claim?.spec.everStood !== true) return undefined;
  if (isWellPlaced(turn, placement, claim.spec.node ?? "")) return undefined;
  const chosen = choose(turn, vm);
  return chosen.ok ? chosen.value : undefined;
}

function declaredOf(
  turn: ConnectedTurn,
  desired: Desired,
  { node, fate }: { readonly node: string; readonly fate: Declared["fate"] },
): Declared {
  const { vm } = turn;
  const { spec, status, metadata } = vm;
  const { shutdown, updatePolicy, driftPolicy, onMissing, powerState: power } = spec;
  const restartAt = annotationOf(metadata, "restartAt");
  return {
    isDeleting: isDeleting(vm),
    fate,
    isProtected: spec.deletionProtection ?? false,
    shape: desired.shape,
    disks: desired.disks,
    absentDisks: diskNames(vm, ({ state }) => state === "Absent"),
    pinnedDisks: diskNames(vm, ({ storage }) => storage !== undefined),
    seed: desired.seed,
    onDelete: onDeleteOf(vm),
    pool: desired.pool,
    movesTo: movesTo(turn),
    clone: cloningOf(turn),
    takes: takesOf(vm),
    node,
    power,
    shutdown,
    updatePolicy,
    driftPolicy,
    onMissing,
    wantsRestart: restartAt !== undefined && restartAt !== status?.handledRestartAt,
    isEdited: status?.appliedGeneration !== metadata.generation,
  };
}

type Disk = NonNullable<VirtualMachine["spec"]["disks"]>[number];

function diskNames({ spec }: VirtualMachine, isOne: (disk: Disk) => boolean): string[] {
  return (spec.disks ?? []).filter(isOne).map(({ name }) => name);
}

function onDeleteOf({ spec }: VirtualMachine): Declared["onDelete"] {
  return Object.fromEntries(
    (spec.disks ?? []).map(({ name, onDelete = "Delete" }) => [name, onDelete]),
  );
}
