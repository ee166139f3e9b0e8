import type {
  ClaimedMachine,
  Draft,
  Failure,
  Inventory,
  Leftover,
  Machine,
  Mark,
  Preflight,
  Seen,
  Survey,
} from "../../hypervisor/index.ts";
import { gib, type ModelMachine, type ModelState } from "./model-state.ts";

/** What a model shows of what stands on it, in the words of the contract. Nothing changes. */

const nodeNames = ["n1", "n2"];

export function inventoryOf({ machines }: ModelState): Inventory {
  const listed = [...machines.values()].map(({ id, node, power, version, lock }) => ({
    externalId: id,
    node,
    kind: "Machine" as const,
    power,
    hint: String(version),
    ...(lock === undefined ? {} : { lock: lock.kind }),
  }));
  const node = { health: "Healthy" as const, cpus: 8, memoryBytes: 64 * gib, memoryUsedBytes: 0 };
  const store = {
    name: "store",
    isShared: false,
    isUsable: true,
    contents: ["Disks" as const, "Images" as const],
    capacityBytes: 1000 * gib,
  };
  return {
    machines: listed,
    nodes: nodeNames.map((name) => ({ ...node, name })),
    storages: nodeNames.map((name) => ({ ...store, node: name })),
    isComplete: true,
    missing: [],
  };
}

export function seenOf({ machines }: ModelState, claim: ClaimedMachine): Seen {
  const machine = machines.get(claim.externalId);
  if (machine === undefined) return { at: "absent" };
  const { node, lock, mark, husk } = machine;
  if (husk === "ours" && lock !== undefined) return { at: "opaque", node, lock };
  if (husk !== undefined) return { at: "foreign", reason: "Husk", detail: "an empty reservation" };
  if (mark === undefined) return { at: "foreign", reason: "Stranger", detail: "it has no mark" };
  if (!agrees(mark, claim))
    return { at: "foreign", reason: "OtherOwner", detail: "another's mark" };
  if (mark.state === "Released") return { at: "foreign", reason: "Released", detail: "let go" };
  return { at: "ours", machine: shown(machine) };
}

function agrees({ installation, identity, owner }: Mark, claim: ClaimedMachine): boolean {
  const isOwner = owner.name === claim.owner.name && owner.namespace === claim.owner.namespace;
  return installation === claim.installation && identity === claim.identity && isOwner;
}

function shown(machine: ModelMachine): Machine {
  const { id, node, version, power, identity, mark, shape, disks, lock } = machine;
  return {
    externalId: id,
    node,
    version: String(version),
    power,
    isTemplate: false,
    identity,
    ...(mark === undefined ? {} : { mark }),
    shape,
    disks: disks.map((disk) => ({ ...disk, bus: "scsi" })),
    networks: [],
    ...(lock === undefined ? {} : { lock }),
    pending: [],
    volumes: disks.map(({ name, volume, storage, sizeBytes }) => ({
      id: volume,
      role: "Disk",
      storage,
      state: "Attached",
      isOwn: true,
      sizeBytes,
      ...(name === undefined ? {} : { disk: name }),
    })),
    hasSnapshots: false,
  };
}

/** What a draft meets, the reachability of the hypervisor aside. */
export function preflightOf(state: ModelState, { claim, disks, isAddition }: Draft): Preflight {
  const { images } = state;
  const isMade = isAddition !== true;
  const { findings, ...before } = isMade ? underIdOf(state, claim) : noneUnderId;
  const missing = disks.flatMap(({ fill }): Failure[] => {
    if (fill.from !== "volume" || images.has(fill.volume)) return [];
    return [{ category: "ImageNotFound", message: `There is no ${fill.volume}.` }];
  });
  return { findings: [...findings, ...missing], ...before };
}

const noneUnderId: Preflight = { findings: [], volumesBefore: [] };

function underIdOf({ machines, volumes }: ModelState, claim: Draft["claim"]): Preflight {
  const volumesBefore = [...volumes.values()]
    .filter(({ owner }) => owner === claim.externalId)
    .map(({ id }) => id);
  const findings: Failure[] = [];
  if (machines.has(claim.externalId)) {
    findings.push({ category: "IdentityConflict", message: `${claim.externalId} is taken.` });
  }
  if (volumesBefore.length > 0) {
    findings.push({ category: "OrphanedVolumes", message: `There is ${volumesBefore.join()}.` });
  }
  return { findings, volumesBefore, inTheWay: volumesBefore };
}

export function surveyOf(state: ModelState, known: ReadonlySet<string>): Survey {
  const { machines, volumes } = state;
  const { nodes, storages } = inventoryOf(state);
  const placed = { storage: "store", node: "n1", isShared: false };
  const orphaned = [...volumes.values()].filter(({ owner }) => !machines.has(owner));
  return {
    machines: [...machines.values()].map((machine) => {
      const { id: externalId, node, power, identity, mark, husk, lock } = machine;
      const inside = husk === undefined ? "Machine" : "Husk";
      return {
        externalId,
        node,
        power,
        content: known.has(externalId) ? "Known" : inside,
        identity,
        ...(mark === undefined ? {} : { mark }),
        ...(lock === undefined ? {} : { lock: lock.detail }),
      };
    }),
    volumes: orphaned.map(({ id, owner, sizeBytes }) => {
      return { volume: id, externalId: owner, sizeBytes, ...placed };
    }),
    files: [],
    nodes: nodes.map(({ name }) => name),
    storages: storages.map(({ name, node }) => `${name} on ${node}`),
    missing: [],
  };
}

export function leftoversOf({ volumes }: ModelState, claim: ClaimedMachine): Leftover[] {
  const before = new Set(claim.preflightVolumes);
  const known = new Set(claim.volumes?.map(({ id }) => id));
  return [...volumes.values()]
    .filter(({ owner }) => owner === claim.externalId)
    .map(({ id, storage, sizeBytes }) => {
      const made = before.has(id) ? "Before" : "MadeUnderMark";
      const proof = known.has(id) ? "Claimed" : made;
      return { volume: id, storage, node: "n1", sizeBytes, proof };
    });
}
