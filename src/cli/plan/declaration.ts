import type { Hypervisor, VirtualMachine, VMClass, VMNetwork } from "../../api/index.ts";
import type { Declaration } from "../../controllers/virtual-machine/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Look } from "./look.ts";

/** What a machine refers to, as far as its shape depends on it. */
export type Surroundings = Pick<
  Declaration,
  "hypervisor" | "vmClass" | "networks" | "storageDefault"
> & { readonly hypervisor: Hypervisor };

/** What is missing, or what there is. */
export type Gathered =
  | { readonly is: "whole"; readonly around: Surroundings }
  | { readonly is: "missing"; readonly what: readonly string[] };

/** Reads what a VirtualMachine refers to, all that is missing by name. */
export async function gather(look: Look, { spec, metadata }: VirtualMachine): Promise<Gathered> {
  const namespace = metadata.namespace ?? "";
  const missing: string[] = [];
  const read = async (kind: string, name: string): Promise<KubeObject | undefined> => {
    const object = await look({ kind, namespace, name });
    if (object === undefined) missing.push(`there is no ${kind} ${name}`);
    return object;
  };
  const hypervisor = await read("Hypervisor", spec.hypervisorRef.name);
  const vmClass = spec.classRef && (await read("VMClass", spec.classRef.name));
  const networks = new Map<string, VMNetwork>();
  for (const { networkRef } of spec.networks ?? []) {
    const network = networkRef && (await read("VMNetwork", networkRef.name));
    // cast: the server admitted it by the schema of its kind.
    if (networkRef && network) networks.set(networkRef.name, network as unknown as VMNetwork);
  }
  if (hypervisor === undefined || missing.length > 0) return { is: "missing", what: missing };
  // cast: the server admitted it by the schema of its kind.
  const home = hypervisor as unknown as Hypervisor;
  // cast: the same holds for its class.
  const known = vmClass as unknown as VMClass | undefined;
  const around = { hypervisor: home, vmClass: known, networks, storageDefault: onlyStorage(home) };
  return { is: "whole", around };
}

/** As the controller chooses where nothing is said and there is only one. */
function onlyStorage({ status }: Hypervisor): string | undefined {
  const taking = (status?.storages ?? []).filter(({ contents }) => contents?.includes("Disks"));
  return taking.length === 1 ? taking[0]?.name : undefined;
}

/** A declaration whose source no longer counts, or is not asked. */
export function declarationOf(
  vm: VirtualMachine,
  around: Surroundings,
  isNew: boolean,
): Declaration {
  return { vm, ...around, fills: new Map(), discs: new Map(), isNew };
}
