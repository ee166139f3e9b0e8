import type { HypervisorStatus } from "../../api/index.ts";
import type { Inventory, Survey } from "../../hypervisor/index.ts";
import type { Find } from "./find.ts";

/** How much there is: what the next look is compared with. */
export interface Extent {
  readonly machines: readonly string[];
  readonly nodes: readonly string[];
  readonly storages: readonly string[];
  /** Machines that Claims hold: what Berth takes away is no surprise. */
  readonly held: readonly string[];
  /** What Berth is taking away or took away just now, by external ids. */
  readonly taken?: ReadonlySet<string>;
  /** Volumes and files that nothing declares. */
  readonly loose?: readonly Loose[];
  /** Volumes and files that were listed, or that Claims of declared machines name. */
  readonly listed?: ReadonlySet<string>;
}

export interface Loose {
  readonly id: string;
  readonly storage: string;
  /** The id of the machine in its name: where that stands again, the volume is its. */
  readonly machine?: string;
}

/** Something that was there, or should be, and is not seen. */
export type Gone = NonNullable<
  NonNullable<NonNullable<HypervisorStatus["sweep"]>["suspicion"]>["gone"]
>[number];

/** A few that go at once are an ordinary day. */
const goneLeast = 2;

/**
 * The list may be a little old: what Berth has let go or taken away meanwhile still stands in it,
 * and counts no more.
 */
export function extentOf(
  { machines, nodes, storages }: Inventory,
  { held, left }: { readonly held: readonly string[]; readonly left: readonly string[] },
): Extent {
  const gone = new Set(left);
  const names = storages.map(({ name, node, isShared }) =>
    isShared ? name : `${name} on ${node}`,
  );
  return {
    machines: machines.map(({ externalId }) => externalId).filter((id) => !gone.has(id)),
    nodes: nodes.map(({ name }) => name),
    storages: [...new Set(names)],
    held,
  };
}

/**
 * How much a sweep showed. It makes a list of its own, so that it can be mistaken by itself: a
 * storage whose mount is missing is usable, and empty.
 */
export function extentOfSurvey(
  { machines, nodes, storages, volumes, files }: Survey,
  finds: readonly Find[],
): Omit<Required<Extent>, "held" | "taken"> {
  const found = new Set(finds.filter((find) => find.storage !== undefined).map(idOf));
  const things = [
    ...volumes.map((volume) => ({ ...volume, machine: volume.externalId })),
    ...files.map((file) => ({ ...file, machine: "" })),
  ];
  const loose = things.flatMap(({ volume: id, machine, storage, node, isShared }) => {
    if (!found.has(id)) return [];
    return [{ id, machine, storage: isShared ? storage : `${storage} on ${node}` }];
  });
  const listed = new Set(things.map(({ volume }) => volume));
  return { machines: machines.map(idOf), nodes, storages, loose, listed };
}

function idOf({ externalId }: { readonly externalId: string }): string {
  return externalId;
}

/**
 * What is suddenly not there any more: a node or a storage, or more than half of the machines, or
 * of what lay on a storage. What Berth itself took away does not count. Pure.
 */
export function goneFrom(before: Extent, now: Extent): Gone[] {
  const taken = new Set([...missingFrom(now.held, before.held), ...(now.taken ?? [])]);
  const gone = missingFrom(now.machines, before.machines).filter((id) => !taken.has(id));
  const isHalf = isMost(gone.length, before.machines.length);
  return [
    ...missingFrom(now.nodes, before.nodes).map((name) => ({ kind: "Node", name }) as const),
    ...missingFrom(now.storages, before.storages).map(
      (name) => ({ kind: "Storage", name }) as const,
    ),
    ...(isHalf ? [{ kind: "VMs", count: gone.length, of: before.machines.length } as const] : []),
    ...emptied(before, now),
  ];
}

/** For people. */
export function goneText({ kind, name = "", count = 0, of = 0 }: Gone): string {
  switch (kind) {
    case "Node":
      return `the node ${name}`;
    case "Storage":
      return `the storage ${name}`;
    case "VMs":
    case "Survey":
      return `${count} of ${of} machines`;
    case "Orphans":
      return `${count} of ${of} orphans on the storage ${name}`;
  }
}

/** Storages that are there, and show suddenly little of what lay on them. */
function emptied({ loose = [] }: Extent, { machines, listed, taken }: Extent): Gone[] {
  const stands = new Set(machines);
  const storages = [...new Set(loose.map(({ storage }) => storage))];
  return storages.flatMap((storage) => {
    const lay = loose.filter((one) => one.storage === storage);
    const gone = lay.filter(({ id, machine = "" }) => {
      return listed?.has(id) !== true && taken?.has(id) !== true && !stands.has(machine);
    });
    const isHalf = isMost(gone.length, lay.length);
    return isHalf
      ? [{ kind: "Orphans", name: storage, count: gone.length, of: lay.length } as const]
      : [];
  });
}

function isMost(gone: number, all: number): boolean {
  return gone >= goneLeast && gone * 2 > all;
}

/**
 * Whether most of what the ledger holds has lost its object at once. Then what is wrong is more
 * likely here than there: kinds that were deleted, or finalizers that somebody removed.
 */
export function isLedgerStranded(held: number, stranded: number): boolean {
  return isMost(stranded, held);
}

/** Those of before that are not among those of now. */
export function missingFrom(now: readonly string[], before: readonly string[]): string[] {
  const there = new Set(now);
  return before.filter((name) => !there.has(name));
}
