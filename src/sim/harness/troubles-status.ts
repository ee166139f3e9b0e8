import { hypervisorKind, orphanKind, virtualMachineKind, vmImageKind } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import type { KubeObject, ObjectMeta } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { webImageName } from "./web-images.ts";
import { siteOf, type Trouble, type TroubleMakers } from "./trouble.ts";

/** An object loses its status: somebody restores it from an export, or edits the subresource. */
export function aroundStatus(makers: TroubleMakers): Trouble[] {
  const { dice } = makers;
  return [
    {
      name: "lose a status",
      weight: 3,
      strike: () => (dice.chance(0.4) ? loseAtWork(makers) : loseAny(makers)),
    },
    {
      name: "lose a Hypervisor's status",
      weight: 1,
      isAlways: true,
      strike: () => loseHypervisors(makers),
    },
  ];
}

type Losing = "VirtualMachine" | "VMImage" | "Orphan";

function loseAny(makers: TroubleMakers): void {
  const { world, dice } = makers;
  const { vms, images, orphans } = world.records;
  const kind = dice.pick<Losing>(["VirtualMachine", "VirtualMachine", "VMImage", "Orphan"]);
  const objects = { VirtualMachine: vms, VMImage: images, Orphan: orphans }[kind];
  const found = dice.pickAny<KubeObject>([...objects.values()]) ?? dice.pickAny([...vms.values()]);
  if (found !== undefined) lose(makers, found);
}

/** At once, or the next time that something is begun on the cluster. */
function loseHypervisors(makers: TroubleMakers): void {
  const { world, dice } = makers;
  const { name } = siteOf(makers);
  const wire = world.wires.get(name);
  const loseNow = (): void => {
    const found = world.records.hypervisors.get(name);
    if (found !== undefined && !world.isCalm) lose(makers, found);
  };
  if (dice.chance(0.5) || wire === undefined || wire.onBegin !== undefined) {
    loseNow();
    return;
  }
  wire.onBegin = () => {
    wire.onBegin = undefined;
    loseNow();
  };
}

/** The next time that something is begun on a cluster: of the very object that it is begun for. */
function loseAtWork(makers: TroubleMakers): void {
  const { world } = makers;
  const { name } = siteOf(makers);
  const wire = world.wires.get(name);
  if (wire === undefined || wire.onBegin !== undefined) return;
  wire.onBegin = (id, kind) => {
    wire.onBegin = undefined;
    const { images, vms } = world.records;
    const { owner } = world.records.claimOf(name, id)?.spec ?? {};
    const found = kind.endsWith("Image")
      ? images.get(`default/${webImageName(name)}`)
      : vms.get(`${owner?.namespace}/${owner?.name}`);
    if (found !== undefined && !world.isCalm) lose(makers, found);
  };
}

function lose({ people }: TroubleMakers, { kind, metadata }: KubeObject): void {
  people.ask(`takes the status of the ${kind} ${metadata.name} away`, (client) => {
    return replaceStatus(client, kind, metadata);
  });
}

async function replaceStatus(client: Client, kind: string, metadata: ObjectMeta): Promise<void> {
  const { namespace, name = "" } = metadata;
  const key = { ...(namespace === undefined ? {} : { namespace }), name };
  if (kind === "Orphan") return clear(client.of(orphanKind), key);
  if (kind === "VMImage") return clear(client.of(vmImageKind), key);
  if (kind === "Hypervisor") return clear(client.of(hypervisorKind), key);
  return clear(client.of(virtualMachineKind), key);
}

interface Objects<Read extends KubeObject> {
  get(key: { readonly namespace?: string; readonly name: string }): Promise<Read>;
  updateStatus(object: Read): Promise<unknown>;
}

async function clear<Read extends KubeObject>(
  objects: Objects<Read>,
  key: { readonly namespace?: string; readonly name: string },
  times = 5,
): Promise<void> {
  const object = await objects.get(key);
  try {
    await objects.updateStatus({ ...object, status: {} });
  } catch (error) {
    // Somebody wrote it at the same moment: it is read again.
    const isOld = error instanceof ApiError && error.reason === "Conflict";
    if (!isOld || times === 0) throw error;
    await clear(objects, key, times - 1);
  }
}
