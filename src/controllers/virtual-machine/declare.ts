import { annotationToken } from "../operations/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { answered } from "../../hypervisor/index.ts";
import type { Answer, Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { objectKey } from "../../kernel/object.ts";
import { lookUpImage } from "./absent.ts";
import { resolveVm, type Resolved } from "./dependencies.ts";
import type { Desired } from "./desired.ts";
import { cloningOf, takesOf } from "./fills.ts";
import { keptDisks } from "./kept-disks.ts";
import { createdFrom, originDigests, type Origins } from "./created-from.ts";
import type { Declared } from "./next.ts";
import { chooseNode, type Neighbours } from "./placement.ts";
import type { Needs } from "./places.ts";
import { bytesOf } from "./quantities.ts";

import { sourceNodes } from "./source-nodes.ts";
import { annotationOf, isDeleting, type ConnectedTurn } from "./turn.ts";

export interface Declaring {
  readonly desired: Desired;
  readonly declared: Declared;
}

/** A declaration, or all that is wrong with it and what it comes to all the same. */
export type DeclareAnswer =
  | { readonly ok: true; readonly value: Declaring }
  | {
      readonly ok: false;
      readonly findings: readonly Failure[];
      readonly desired?: Desired | undefined;
      readonly place?: Elsewhere;
    };

/** Where a machine that cannot be placed is looked at, to say all else that is wrong with it. */
export interface Elsewhere {
  /** Absent where no node can stand for the one that is meant. */
  readonly node?: string | undefined;
  /** Storages of which it is said already that they are not there. */
  readonly lacks?: ReadonlySet<string>;
}

/** What is declared, as the plan takes it. An object that goes away needs nothing else. */
export async function declare(turn: ConnectedTurn): Promise<DeclareAnswer> {
  const nothing: Desired = { shape: {}, disks: [] };
  if (isDeleting(turn.vm)) {
    const fate = await fateOf(turn);
    const declared = declaredOf(turn, nothing, { node: "", fate });
    return { ok: true, value: { desired: nothing, declared } };
  }
  const chosen = nodeFor(turn);
  if (chosen.ok) turn.node = chosen.value;
  const { desired, findings } = await fittedVm(turn);
  const { place, unplaced } = chosen.ok ? here(chosen.value) : elsewhere(turn, chosen.failure);
  const wrong = [...unplaced, ...findings];
  if (!chosen.ok || desired === undefined || wrong.length > 0) {
    return { ok: false, findings: wrong, desired, place };
  }
  const declared = declaredOf(turn, desired, { node: chosen.value, fate: "Retain" });
  return { ok: true, value: { desired, declared } };
}

interface Unplaced {
  readonly place: Elsewhere;
  readonly unplaced: readonly Failure[];
}

function here(node: string): Unplaced {
  return { place: { node }, unplaced: [] };
}

/**
 * Where it might have been, had everything else been right: to say what is wrong there too. Only a
 * declaration that is wrong itself is looked at on another node than it names: for one that is
 * down no other can speak, and what it lacks would be held against the machine.
 */
function elsewhere(turn: ConnectedTurn, failure: Failure): Unplaced {
  const chosen = choose(turn);
  if (chosen.ok) return { place: { node: chosen.value }, unplaced: [failure] };
  const unplaced = [failure, chosen.failure];
  if (chosen.failure.category !== "ConfigurationError") return { place: {}, unplaced };
  const anywhere = choosing(turn, { ...turn.vm.spec, placement: { mode: "Initial" } });
  if (anywhere.ok) return { place: { node: anywhere.value }, unplaced };
  const { nodes, storages } = turn.connection.inventory;
  const node = nodes.find(({ health }) => health === "Healthy")?.name;
  const there = new Set(storages.filter((row) => row.node === node).map(({ name }) => name));
  const wanted = (turn.vm.spec.disks ?? []).flatMap(({ storage }) => storage ?? []);
  const lacks = new Set(wanted.filter((storage) => !there.has(storage)));
  return { place: { node, lacks }, unplaced: [...unplaced, anywhere.failure] };
}

/** What the VM comes to, in the hypervisor's dialect. */
async function fittedVm(turn: ConnectedTurn): Promise<Resolved> {
  const { desired, findings } = await resolveVm(turn, turn.node);
  if (desired === undefined) return { findings };
  const { shape, refusals } = turn.driver.fit(desired.shape);
  return { desired: { ...desired, shape }, findings: [...findings, ...refusals] };
}

/** Destroyed only if the object says so, and not merely because its kind goes away. */
async function fateOf({ vm, claim, deps }: ConnectedTurn): Promise<"Destroy" | "Retain"> {
  // Who says that it should be forgotten does not say that it should be destroyed.
  if (annotationOf(vm.metadata, "forget") !== undefined) return "Retain";
  const whenAbsent = claim?.spec.origin === "Adopted" ? "Retain" : "Delete";
  if ((vm.spec.deletionPolicy ?? whenAbsent) === "Retain") return "Retain";
  return guard("destroy-kind-stays", await deps.mayDestroy()) ? "Destroy" : "Retain";
}

/** A node that was chosen stays chosen, wherever the machine has gone since. */
function nodeFor(turn: ConnectedTurn): Answer<string> {
  const known = turn.claim?.spec.node;
  if (known !== undefined) return answered(known);
  const from = turn.vm.spec.adopt === "Only" ? answered(undefined) : sourceNodes(turn);
  if (!from.ok) return from;
  const kept = keptNode(turn);
  const isBeside = kept !== undefined && (from.value?.has(kept) ?? true);
  return isBeside ? answered(kept) : choose(turn, from.value);
}

function choose(turn: ConnectedTurn, from?: ReadonlySet<string>): Answer<string> {
  const { deps, key } = turn;
  const chosen = choosing(turn, turn.vm.spec, from);
  const sinceMs = deps.clock.monotonicMs();
  if (chosen.ok) deps.places.chose(key, { ...needsOf(turn), node: chosen.value, sinceMs });
  return chosen;
}

function choosing(
  turn: ConnectedTurn,
  spec: VirtualMachine["spec"],
  from?: ReadonlySet<string>,
): Answer<string> {
  const { vm, connection } = turn;
  return chooseNode({ ...vm, spec }, connection.inventory, {
    storageDefault: connection.spec.defaults?.storage,
    needs: needsOf(turn),
    loads: loadsOf(turn),
    from,
    away: neighboursOf(turn),
  });
}

/** What was given to each node, whether or not it can be seen there yet. */
function loadsOf({ key, deps, connection }: ConnectedTurn): ReturnType<typeof deps.places.loads> {
  const { machines } = connection.inventory;
  const seen = machines.filter(({ power }) => power === "Running");
  return deps.places.loads({
    key,
    held: deps.ledger.heldOn(connection.systemId),
    running: new Set(seen.map(({ externalId }) => externalId)),
    nowMs: deps.clock.monotonicMs(),
  });
}

function needsOf({ vm, deps }: ConnectedTurn): Needs {
  const { classRef, cpu, memory } = vm.spec;
  const namespace = vm.metadata.namespace ?? "";
  const vmClass = classRef && deps.lookups.classes.get(`${namespace}/${classRef.name}`);
  const { cores = 1, sockets = 1 } = { ...vmClass?.spec.cpu, ...cpu };
  const { size = 0 } = { ...vmClass?.spec.memory, ...memory };
  return { cpus: cores * sockets, memoryBytes: bytesOf(size) };
}

/** Beside the disks that are kept for it, if it may be there: else the keeper has to come. */
function keptNode(turn: ConnectedTurn): string | undefined {
  const { placement } = turn.vm.spec;
  const nodes = keptDisks(turn).map(({ node }) => node);
  const online = turn.connection.inventory.nodes.filter(({ health }) => health === "Healthy");
  return nodes.find((node) => {
    const isThere = node !== undefined && online.some(({ name }) => name === node);
    return isThere && (placement === undefined || isWellPlaced(turn, placement, node));
  });
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
    return new Set(
      others.flatMap(({ metadata, status }) => {
        return status?.node ?? deps.places.nodeOf(objectKey(metadata)) ?? [];
      }),
    );
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
export function movesTo(turn: ConnectedTurn): string | undefined {
  const { vm, claim } = turn;
  const { placement } = vm.spec;
  if (placement?.mode !== "Enforce" || claim?.spec.everExisted !== true) return undefined;
  if (isWellPlaced(turn, placement, claim.spec.node ?? "")) return undefined;
  const chosen = choose(turn);
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
  const restartAt = annotationToken(metadata, "restartAt");
  return {
    isDeleting: isDeleting(vm),
    fate,
    isProtected: spec.deletionProtection ?? false,
    liftsProtection: spec.deletionProtection === false,
    shape: desired.shape,
    disks: desired.disks,
    absentDisks: diskNames(vm, ({ state }) => state === "Absent"),
    pinnedDisks: diskNames(vm, ({ storage }) => storage !== undefined),
    seed: desired.seed,
    createdFrom: [...originDigests(originsOf(turn, desired)), ...createdFrom(vm)],
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

/** What it refers to, as far as that was looked up in this turn. */
function originsOf(turn: ConnectedTurn, { origins }: Desired): Origins {
  const { image, clone } = turn.vm.spec.source ?? {};
  const name = image?.name ?? clone?.imageRef?.name;
  return {
    image: name === undefined ? undefined : lookUpImage(turn, name),
    secrets: origins ?? {},
    key: turn.deps.digestKey,
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
