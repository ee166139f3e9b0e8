import {
  claimKind,
  hypervisorKind,
  virtualMachineKind,
  vmClassKind,
  vmImageKind,
  vmNetworkKind,
} from "../api/index.ts";
import type {
  Claim,
  Hypervisor,
  VirtualMachine,
  VMClass,
  VMImage,
  VMNetwork,
} from "../api/index.ts";
import { createInformer, type Client, type Informer } from "../client/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { claimIndexes } from "./claims/index.ts";

export interface Informers {
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly claims: Informer<Claim>;
  readonly classes: Informer<VMClass>;
  readonly images: Informer<VMImage>;
  readonly networks: Informer<VMNetwork>;
}

export interface InformerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly onError: (error: unknown) => void;
}

/** How VMs are found by what they refer to. */
const vmIndexes = {
  hypervisor: ({ spec, status }: VirtualMachine): string[] => {
    return [...new Set([spec.hypervisorRef.name, status?.hypervisor ?? spec.hypervisorRef.name])];
  },
  class: ({ metadata, spec }: VirtualMachine): string[] => {
    return spec.classRef ? [`${metadata.namespace ?? ""}/${spec.classRef.name}`] : [];
  },
  image: (vm: VirtualMachine): string[] => {
    const { image, clone } = vm.spec.source ?? {};
    const names = [image?.name, clone?.imageRef?.name].filter((name) => name !== undefined);
    return names.map((name) => `${vm.metadata.namespace ?? ""}/${name}`);
  },
  network: ({ spec }: VirtualMachine): string[] => {
    return (spec.networks ?? []).flatMap(({ networkRef }) => (networkRef ? [networkRef.name] : []));
  },
  source: ({ metadata, spec }: VirtualMachine): string[] => {
    const name = spec.source?.clone?.vmRef?.name;
    return name === undefined ? [] : [`${metadata.namespace ?? ""}/${name}`];
  },
};

/** Starts copies of all that the controllers read. */
export function startInformers(deps: InformerDeps): Informers {
  return {
    vms: createInformer({ ...deps, kind: virtualMachineKind, indexes: vmIndexes }),
    hypervisors: createInformer({ ...deps, kind: hypervisorKind }),
    claims: createInformer({ ...deps, kind: claimKind, indexes: claimIndexes }),
    classes: createInformer({ ...deps, kind: vmClassKind }),
    images: createInformer({ ...deps, kind: vmImageKind }),
    networks: createInformer({ ...deps, kind: vmNetworkKind }),
  };
}

export async function stopInformers(informers: Informers): Promise<void> {
  const { vms, hypervisors, claims, classes, images, networks } = informers;
  const all = [vms, hypervisors, claims, classes, images, networks];
  await Promise.all(all.map((informer) => informer.stop()));
}
