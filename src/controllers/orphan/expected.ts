import type { Claim, Orphan, VirtualMachine } from "../../api/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { Extent, Loose } from "./extent.ts";
import { recordedTimes, type SweepRecord } from "./record.ts";
import { ownerOf, type SweepDeps } from "./sweep-deps.ts";

/** A VM that was made just now is not in every list yet. */
const listedMs = 2 * 60_000;

/**
 * What the objects of the API say is on a hypervisor: VMs of Claims, with their nodes and storages,
 * and Orphans. A process that has seen nothing yet compares its first look with that.
 */
export function expectedExtent(
  { name, systemId }: Connection,
  deps: SweepDeps,
  { now, record }: { readonly now: Extent; readonly record: SweepRecord },
): Extent {
  const claims = deps.claims
    .byIndex("system", systemId)
    .filter((claim) => isExpected(deps, claim, record));
  const nodes = claims.flatMap(({ spec }) => spec.node ?? []);
  const storages = claims.flatMap(({ spec }) => {
    const named = (spec.volumes ?? []).flatMap(({ storage }) => storage ?? []);
    return named.map((storage) => storageOf({ storage, node: spec.node ?? "" }, now));
  });
  return {
    machines: claims.map(({ spec }) => spec.externalId),
    nodes: [...new Set(nodes)],
    storages: [...new Set(storages)],
    held: now.held,
    loose: deps.orphans.byIndex("hypervisor", name).flatMap((orphan) => looseOf(orphan, now)),
  };
}

/** A VM that exists for all that is known: neither its object nor a sweep says otherwise. */
function isExpected(
  deps: SweepDeps,
  { metadata, spec }: Claim,
  { emptyClaims }: SweepRecord,
): boolean {
  const boundMs = Date.parse(spec.boundAt ?? "");
  const isOld = deps.clock.nowMs() - boundMs >= listedMs;
  if (spec.state !== "Bound" || !isOld) return false;
  const isEmpty = recordedTimes(emptyClaims, [metadata.uid ?? ""]).size > 0;
  return !isEmpty && isThere(ownerOf(deps, spec));
}

/** Whether an object says that its VM exists, or none does. */
function isThere(vm: VirtualMachine | undefined): boolean {
  const { operation, failure } = vm?.status ?? {};
  const isLeaving = vm?.metadata.deletionTimestamp !== undefined;
  return !isLeaving && operation === undefined && failure?.category !== "Missing";
}

function looseOf({ spec, status }: Orphan, now: Extent): Loose[] {
  const { storage, node = "" } = status ?? {};
  if (storage === undefined) return [];
  return [{ id: spec.externalId, storage: storageOf({ storage, node }, now) }];
}

/** As a look names it: whether all nodes share a storage, only the look knows. */
function storageOf(
  { storage, node }: { readonly storage: string; readonly node: string },
  { storages }: Extent,
): string {
  const own = `${storage} on ${node}`;
  return storages.includes(own) ? own : storage;
}
