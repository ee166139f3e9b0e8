import type { Draft, DriverNotes, Failure, Preflight } from "../../hypervisor/index.ts";
import { sourceOf } from "./model-disks.ts";
import { cannotClone } from "./model-making.ts";
import { fitShape } from "./model-shape.ts";
import { freeBytes, type ModelState, networkNames, nodeNames } from "./model-state.ts";

/** All that is wrong with a draft, the reachability of the hypervisor aside. */
export function preflightOf(state: ModelState, draft: Draft): Preflight {
  const { clone, shape } = draft;
  const cloned = clone === undefined ? undefined : cannotClone(state, clone);
  const { findings, ...before } = draft.isAddition === true ? noneUnderId : underId(state, draft);
  return {
    findings: [
      ...fitShape(shape).refusals,
      ...places(state, draft),
      ...space(state, draft),
      ...sources(state, draft),
      ...(cloned === undefined ? [] : [cloned]),
      ...findings,
    ],
    ...before,
  };
}

function places(state: ModelState, { node, disks, shape, seedStorage }: Draft): Failure[] {
  const storages = [
    ...disks.map(({ storage }) => storage),
    ...[shape.firmware?.storage, seedStorage].filter((name) => name !== undefined),
  ];
  const networks = (shape.networks ?? []).flatMap(({ network }) => network ?? []);
  const missing = [
    ...[node].filter((name) => !nodeNames.includes(name)).map((name) => `node ${name}`),
    ...storages
      .filter((name) => state.storages.every((storage) => storage.name !== name))
      .map((name) => `storage ${name}`),
    ...networks.filter((name) => !networkNames.includes(name)).map((name) => `network ${name}`),
  ];
  return [...new Set(missing)].map((what) => {
    return { category: "ConfigurationError", message: `There is no ${what} on ${node}.` };
  });
}

function space(state: ModelState, { disks }: Draft): Failure[] {
  return state.storages.flatMap(({ name }): Failure[] => {
    const here = disks.filter(({ storage }) => storage === name);
    const wanted = here.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0);
    if (wanted <= (freeBytes(state, name) ?? 0)) return [];
    return [{ category: "QuotaExceeded", message: `${name} has no room for ${wanted} bytes.` }];
  });
}

function sources(state: ModelState, { disks, node }: Draft): Failure[] {
  return disks.flatMap(({ fill }): Failure[] => {
    const source = sourceOf(state, fill, node);
    return "category" in source ? [source] : [];
  });
}

const noneUnderId: Preflight = { findings: [], otherVolumes: [] };

/** That this Claim's id was listed: without it nothing that appears there is taken for ours. */
const listed: DriverNotes = { version: 1, data: JSON.stringify({ isListed: true }) };

function underId({ machines, volumes }: ModelState, { claim, takes = [] }: Draft): Preflight {
  const otherVolumes = [...volumes.values()]
    .filter(({ owner }) => owner === claim.externalId)
    .map(({ id }) => id);
  const inTheWay = otherVolumes.filter((id) => !takes.includes(id));
  const findings: Failure[] = [];
  if (machines.has(claim.externalId)) {
    findings.push({ category: "IdentityConflict", message: `${claim.externalId} is taken.` });
  }
  if (inTheWay.length > 0) {
    findings.push({ category: "OrphanedVolumes", message: `There is ${inTheWay.join()}.` });
  }
  return { findings, otherVolumes, inTheWay, notes: listed };
}
