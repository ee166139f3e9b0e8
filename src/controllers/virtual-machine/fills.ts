import type { VirtualMachine, VMImage } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Failure, Fill } from "../../hypervisor/index.ts";
import { absent, lookUpImage } from "./absent.ts";
import type { Cloning } from "./next.ts";
import type { ConnectedTurn } from "./turn.ts";

type Fills = Map<string, Fill>;

/** What fills each disk, by its name. Disks that are not in it begin empty. */
export function fillsOf(turn: ConnectedTurn, node: string | undefined): Answer<Fills> {
  const { image, clone, importedDisk } = turn.vm.spec.source ?? {};
  if (image !== undefined) return fillOfImage(turn, image, node);
  if (clone !== undefined) return fillsOfClone(turn, clone);
  if (importedDisk === undefined) return answered(new Map());
  const fill: Fill = { from: "volume", volume: importedDisk.diskId };
  return answered(new Map([[importedDisk.disk, fill]]));
}

/** What lies in each drive that names a VMImage, by the drive's name. */
export function discsOf(
  turn: ConnectedTurn,
  node: string | undefined,
): Answer<Map<string, string>> {
  const discs = new Map<string, string>();
  for (const { name, imageRef } of turn.vm.spec.cdroms ?? []) {
    if (imageRef === undefined) continue;
    const image = lookUpImage(turn, imageRef.name);
    if (image === undefined) {
      return failed(absent("VMImage", imageRef.name, turn.vm.metadata.namespace));
    }
    const fill = imageFill(turn, image, node);
    if (!fill.ok) return fill;
    if (fill.value.from !== "volume") return failed(notHere(image, "it is no disc"));
    discs.set(name, fill.value.volume);
  }
  return answered(discs);
}

function fillOfImage(
  turn: ConnectedTurn,
  { name, disk }: { name: string; disk: string },
  node: string | undefined,
): Answer<Fills> {
  const image = lookUpImage(turn, name);
  if (image === undefined) return failed(absent("VMImage", name, turn.vm.metadata.namespace));
  const fill = imageFill(turn, image, node);
  return fill.ok ? answered(new Map([[disk, fill.value]])) : fill;
}

function imageFill(turn: ConnectedTurn, image: VMImage, node: string | undefined): Answer<Fill> {
  const { volume, template } = image.spec.source;
  const elsewhere = (volume ?? template)?.hypervisorRef.name;
  if (elsewhere !== undefined && elsewhere !== turn.connection.name) {
    return failed(notHere(image, `it is on the Hypervisor ${elsewhere}`));
  }
  if (volume !== undefined) return answered({ from: "volume", volume: volume.id });
  if (template === undefined) return copyFill(turn, image, node);
  return answered({ from: "machine", externalId: template.externalId });
}

/** The copy of an image's file that the node can see. */
function copyFill(turn: ConnectedTurn, image: VMImage, node: string | undefined): Answer<Fill> {
  const here = turn.connection.name;
  const copy = image.status?.copies?.find((candidate) => {
    const isThere = candidate.hypervisor === here && candidate.state === "Present";
    return isThere && (candidate.node === undefined || candidate.node === node);
  });
  if (copy?.volume === undefined) return failed(notBrought(turn, image, node));
  const { volume, verified, size, createdAt } = copy;
  // What nobody verified is used as it is.
  const knownFile = verified ? { knownFile: { size, createdAt } } : {};
  return answered({ from: "volume", volume, ...knownFile });
}

/** As long as nothing failed at the place of this VM it is on its way; others have their own. */
function notBrought(
  { vm, deps, connection }: ConnectedTurn,
  image: VMImage,
  node: string | undefined,
): Failure {
  const { name: hypervisor } = connection;
  const name = image.metadata.name ?? "";
  const message = `The image ${name} is not on the Hypervisor ${hypervisor} yet.`;
  const own = image.status?.copies?.find((copy) => {
    const isHere = copy.hypervisor === hypervisor && (copy.node ?? node) === node;
    return isHere && copy.failure !== undefined;
  });
  const failure = own?.failure ?? deps.imageRefusal(image, vm, connection);
  if (failure === undefined) {
    const remedy = "It is being brought there: see the status of the VMImage.";
    return { category: "DependencyNotReady", message, remedy, isUnderWay: true };
  }
  const { message: why, remedy } = failure;
  return {
    category: "DependencyNotReady",
    message: `${message} ${why}`,
    remedy: remedy ?? "See the status of the VMImage.",
  };
}

type Clone = NonNullable<NonNullable<ConnectedTurn["vm"]["spec"]["source"]>["clone"]>;

/** Where the copy has to be the hypervisor's own: linked, or of a snapshot. */
export function cloningOf(turn: ConnectedTurn): Cloning | undefined {
  const { clone } = turn.vm.spec.source ?? {};
  if (clone === undefined || (clone.mode !== "Linked" && clone.snapshot === undefined)) {
    return undefined;
  }
  const source = cloneSource(turn, clone);
  if (!source.ok) return undefined;
  const { mode, snapshot, disk } = clone;
  const disks = (clone.disks ?? []).map(({ name, device }) => ({ name, slot: device }));
  const at = snapshot === undefined ? {} : { snapshot };
  return { source: source.value, mode, ...at, disk, disks };
}

/** Until its mark was read, a copy is found by its source. */
export function cloneHints(turn: ConnectedTurn): { readonly clonedFrom?: string } {
  const cloning = turn.claim?.spec.state === "Reserved" ? cloningOf(turn) : undefined;
  return cloning === undefined ? {} : { clonedFrom: cloning.source };
}

function fillsOfClone(turn: ConnectedTurn, clone: Clone): Answer<Fills> {
  const source = cloneSource(turn, clone);
  if (!source.ok) return source;
  // What the hypervisor copies itself is there already, and is not filled.
  if (cloningOf(turn) !== undefined) return answered(new Map());
  const externalId = source.value;
  const fills: Fills = new Map([[clone.disk, { from: "machine", externalId }]]);
  for (const { name, device } of clone.disks ?? []) {
    fills.set(name, { from: "machine", externalId, disk: device });
  }
  return answered(fills);
}

/** The machine that is copied, by its id. */
export function cloneSource(
  turn: ConnectedTurn,
  { vmRef, imageRef, externalId }: Clone,
): Answer<string> {
  if (externalId !== undefined) return answered(externalId);
  return imageRef === undefined
    ? machineSource(turn, vmRef?.name ?? "")
    : templateSource(turn, imageRef.name);
}

function templateSource(turn: ConnectedTurn, name: string): Answer<string> {
  const image = lookUpImage(turn, name);
  if (image === undefined) return failed(absent("VMImage", name, turn.vm.metadata.namespace));
  const { template } = image.spec.source;
  if (template === undefined) return failed(notHere(image, "its source is no template"));
  if (template.hypervisorRef.name === turn.connection.name) return answered(template.externalId);
  return failed(notHere(image, `it is on the Hypervisor ${template.hypervisorRef.name}`));
}

function isWhole({ status }: VirtualMachine): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some((one) => one.type === "Provisioned" && one.status === "True");
}

function machineSource(
  { vm, deps, connection, claim }: ConnectedTurn,
  name: string,
): Answer<string> {
  const namespace = vm.metadata.namespace ?? "";
  const source = deps.lookups.vms.get(`${namespace}/${name}`);
  if (source === undefined) return failed(absent("VirtualMachine", name, namespace));
  const { hypervisor, externalId: id } = source.status ?? {};
  // What was begun goes on, whatever becomes of the original.
  const isFit = claim !== undefined || isWhole(source);
  if (isFit && id !== undefined && hypervisor === connection.name) return answered(id);
  return failed({
    category: "DependencyNotReady",
    message: `The VirtualMachine ${name} does not stand on the Hypervisor ${connection.name}.`,
  });
}

function notHere({ metadata }: VMImage, why: string): Failure {
  return {
    category: "ConfigurationError",
    message: `The image ${metadata.name ?? ""} cannot be used here: ${why}.`,
    remedy: "Name another image, or another Hypervisor.",
  };
}

/** A volume that becomes the machine's own, by the name of its disk. */
export function takesOf({ spec }: VirtualMachine): Readonly<Record<string, string>> {
  const { importedDisk } = spec.source ?? {};
  return importedDisk?.mode === "Take" ? { [importedDisk.disk]: importedDisk.diskId } : {};
}
