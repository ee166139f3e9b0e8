import type { VMImage } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { absent, lookUpImage } from "./absent.ts";
import { cloneSource } from "./fills.ts";
import type { ConnectedTurn } from "./turn.ts";

type Nodes = ReadonlySet<string>;

/**
 * The nodes on which the machine can be made, by what it is made from; undefined where that does
 * not matter. A copy is made where its original is, and a file on a node's own storage is read
 * there only.
 */
export function sourceNodes(turn: ConnectedTurn): Answer<Nodes | undefined> {
  const { image, clone } = turn.vm.spec.source ?? {};
  if (clone !== undefined) {
    const source = cloneSource(turn, clone);
    return source.ok ? nodesOfMachine(turn, source.value) : source;
  }
  return image === undefined ? answered(undefined) : nodesOfImage(turn, image.name);
}

/** Where the last glance at the cluster, or the object of the machine itself, saw it. */
function nodesOfMachine(turn: ConnectedTurn, externalId: string): Answer<Nodes | undefined> {
  const { connection, deps } = turn;
  const row = connection.inventory.machines.find((one) => one.externalId === externalId);
  const own = deps.lookups.vms.byIndex("hypervisor", connection.name).find(({ status }) => {
    return status?.externalId === externalId;
  });
  const node = own?.status?.node ?? row?.node;
  if (node !== undefined) return answered(new Set([node]));
  return failed({
    category: "ImageNotFound",
    message: `The machine ${externalId} to copy was not seen on ${connection.name}.`,
    remedy: "Check its id, and whether the token may see it. Berth looks again by itself.",
  });
}

function nodesOfImage(turn: ConnectedTurn, name: string): Answer<Nodes | undefined> {
  const image = lookUpImage(turn, name);
  if (image === undefined) return failed(absent("VMImage", name, turn.vm.metadata.namespace));
  const { volume, template } = image.spec.source;
  if (template?.hypervisorRef.name === turn.connection.name) {
    return nodesOfMachine(turn, template.externalId);
  }
  return volume === undefined ? answered(undefined) : nodesOfVolume(turn, image);
}

function nodesOfVolume(
  turn: ConnectedTurn,
  { metadata, status }: VMImage,
): Answer<Nodes | undefined> {
  const here = turn.connection.name;
  if (status?.observedGeneration !== metadata.generation) {
    const message = `The image ${metadata.name ?? ""} is being looked for.`;
    return failed({ category: "DependencyNotReady", message, isUnderWay: true });
  }
  const copies = (status?.copies ?? []).filter((copy) => {
    return copy.hypervisor === here && copy.state === "Present";
  });
  const nodes = copies.flatMap(({ node }) => node ?? []);
  // One that all nodes see, or one that nobody found: the rest is for the preflight to say.
  return answered(nodes.length === 0 || nodes.length < copies.length ? undefined : new Set(nodes));
}
