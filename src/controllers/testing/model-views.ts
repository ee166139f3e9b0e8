import { isBerthFile } from "../../hypervisor/index.ts";
import type {
  Change,
  ClaimedMachine,
  GuestView,
  ImageFile,
  ImagePlace,
  Inventory,
  Leftover,
  Survey,
  SurveyedFile,
  SurveyedMachine,
} from "../../hypervisor/index.ts";
import { isForNextStart, nameIn } from "./model-shape.ts";
import {
  gib,
  type ModelFile,
  type ModelMachine,
  type ModelState,
  nodeNames,
  referencesOf,
  userOf,
} from "./model-state.ts";

/** What a model shows of everything on it, in the words of the contract. Nothing changes. */

export function inventoryOf({ machines, storages, epochs }: ModelState): Inventory {
  const listed = [...machines.values()].map((machine) => {
    const { id, node, power, version, lock, isTemplate = false, pool } = machine;
    return {
      externalId: id,
      node,
      kind: isTemplate ? ("Template" as const) : ("Machine" as const),
      power,
      hint: String(version),
      ...(lock === undefined ? {} : { lock: lock.kind }),
      ...(pool === undefined ? {} : { pool }),
    };
  });
  const node = { health: "Healthy" as const, cpus: 8, memoryBytes: 64 * gib, memoryUsedBytes: 0 };
  const placed = nodeNames.flatMap((name) =>
    storages.map((storage) => ({ ...storage, node: name })),
  );
  return {
    machines: listed,
    nodes: nodeNames.map((name) => ({ ...node, name })),
    storages: placed.map((storage) => ({ ...storage, isShared: false, isUsable: true })),
    isComplete: true,
    missing: [],
    epochs: [...epochs].map(([installation, { number }]) => ({ installation, number })),
  };
}

/** A VM that is known is listed and not looked into. */
export function surveyOf(state: ModelState, known: ReadonlySet<string>): Survey {
  const { machines, volumes } = state;
  const { nodes, storages } = inventoryOf(state);
  const orphaned = [...volumes.values()].filter(({ id, owner }) => {
    return !machines.has(owner) && userOf(state, id) === undefined;
  });
  return {
    machines: [...machines.values()].map((machine) => {
      return {
        ...surveyed(machine),
        ...(known.has(machine.id) ? asKnown : inside(state, machine)),
      };
    }),
    volumes: orphaned.map(({ id, owner, storage, sizeBytes, node = "n1" }) => {
      return { volume: id, externalId: owner, storage, node, isShared: false, sizeBytes };
    }),
    files: [...filesOf(state.images, "Disk"), ...filesOf(state.discs, "Disc")],
    nodes: nodes.map(({ name }) => name),
    storages: storages.map(({ name, node }) => `${name} on ${node}`),
    missing: [],
  };
}

const asKnown = { content: "Known" } as const;

function surveyed({ id, node, power, lock }: ModelMachine): Omit<SurveyedMachine, "content"> {
  return {
    externalId: id,
    node,
    power,
    ...(lock === undefined ? {} : { lock: lock.detail }),
  };
}

function inside(
  { volumes, discs }: ModelState,
  machine: ModelMachine,
): Pick<SurveyedMachine, "content" | "identity" | "mark" | "sizeBytes" | "discs" | "isTemplate"> {
  const { husk, identity, mark, isTemplate = false } = machine;
  if (husk !== undefined) return { content: "Husk" };
  const used = [...referencesOf(machine)];
  return {
    content: "Machine",
    identity,
    isTemplate,
    ...(mark === undefined ? {} : { mark }),
    sizeBytes: used.reduce((sum, id) => sum + (volumes.get(id)?.sizeBytes ?? 0), 0),
    discs: used.filter((id) => discs.has(id)),
  };
}

function filesOf(files: ReadonlyMap<string, ModelFile>, use: SurveyedFile["use"]): SurveyedFile[] {
  return [...files.values()]
    .filter(({ fileName }) => isBerthFile(fileName))
    .flatMap(({ nodes, volume, fileName, sizeBytes }) => {
      const storage = storageOf(volume);
      const file = { volume, fileName, sizeBytes, use, storage, isShared: false };
      return [...nodes].map((node) => ({ ...file, node }));
    });
}

function storageOf(volume: string): string {
  return volume.slice(0, volume.indexOf(":"));
}

export function filesAt(
  files: ReadonlyMap<string, ModelFile>,
  { node, storage }: ImagePlace,
): ImageFile[] {
  return [...files.values()]
    .filter(({ volume, nodes }) => storageOf(volume) === storage && nodes.has(node))
    .map(({ volume, fileName, sizeBytes }) => ({ volume, fileName, sizeBytes }));
}

/** Volumes of a Claim that no VM refers to, with what is known of whose they are. */
export function leftoversOf(state: ModelState, claim: ClaimedMachine): Leftover[] {
  const known = new Set(claim.volumes?.map(({ id }) => id));
  const proofOf = (id: string): Leftover["proof"] => {
    if (claim.otherVolumes?.some((other) => other.id === id) === true) return "Before";
    if (known.has(id)) return "Claimed";
    if (claim.probableVolumes?.some((one) => one.id === id) === true) return "Probable";
    return state.volumes.get(id)?.isLogged === true ? "TaskLogged" : "Unattributed";
  };
  return [...state.volumes.values()]
    .filter(({ id, owner }) => owner === claim.externalId || known.has(id))
    .filter(({ id }) => userOf(state, id) === undefined)
    .map(({ id, storage, sizeBytes, node = "n1" }) => {
      const probable = claim.probableVolumes?.find((one) => one.id === id);
      const evidence = probable?.evidence ?? ["The log of the task names it."];
      return { volume: id, storage, node, sizeBytes, proof: proofOf(id), evidence };
    });
}

/** Every guest of the model has an agent, which answers where there is a channel for it. */
export function guestOf({ machines }: ModelState, { externalId }: ClaimedMachine): GuestView {
  const machine = machines.get(externalId);
  if (machine?.power !== "Running" || machine.shape.guestAgent !== true) return { agent: "Off" };
  const cards = machine.cards.map(({ slot, options: { macAddress } }, index) => {
    const network = nameIn(machine.mark?.networks ?? {}, slot);
    return {
      ...(network === undefined ? {} : { network }),
      ...(macAddress === undefined ? {} : { macAddress }),
      device: `eth${index}`,
      addresses: [{ address: `10.0.0.${5 + index}`, prefix: 24 }],
    };
  });
  return { agent: "Answered", cards };
}

export function changeOf(path: string): Change {
  if (isForNextStart(path)) return { class: "Reboot", detail: "It waits for the next start." };
  return { class: "Live", detail: "The model takes it at once." };
}
