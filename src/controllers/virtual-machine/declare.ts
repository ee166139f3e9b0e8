import type { VirtualMachine } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { resolveVm } from "./dependencies.ts";
import type { Desired } from "./desired.ts";
import type { Declared } from "./next.ts";
import { chooseNode } from "./placement.ts";
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
function nodeFor({ vm, claim, connection }: ConnectedTurn): Answer<string> {
  const known = claim?.spec.node;
  if (known !== undefined) return answered(known);
  const { inventory, spec } = connection;
  return chooseNode(vm, inventory, spec.defaults?.storage);
}

function declaredOf(
  { vm }: ConnectedTurn,
  desired: Desired,
  { node, fate }: { readonly node: string; readonly fate: Declared["fate"] },
): Declared {
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
