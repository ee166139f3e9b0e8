import {
  claimKind,
  hypervisorKind,
  orphanKind,
  virtualMachineKind,
  vmClassKind,
  vmImageKind,
  vmNetworkKind,
} from "../api/index.ts";
import type {
  Claim,
  Hypervisor,
  Orphan,
  VirtualMachine,
  VMClass,
  VMImage,
  VMNetwork,
} from "../api/index.ts";
import {
  createInformer,
  type Client,
  type Indexes,
  type Informer,
  type Kind,
} from "../client/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import { claimIndexes, WrittenObjects } from "./claims/index.ts";
import { imagesWanted } from "./vm-image/index.ts";

export interface Informers {
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly claims: Informer<Claim>;
  readonly classes: Informer<VMClass>;
  readonly images: Informer<VMImage>;
  readonly networks: Informer<VMNetwork>;
  readonly orphans: Informer<Orphan>;
}

/** What the controllers write themselves, each with what has not come back yet. */
export interface WrittenKinds {
  readonly vms: WrittenObjects<VirtualMachine>;
  readonly hypervisors: WrittenObjects<Hypervisor>;
  readonly images: WrittenObjects<VMImage>;
  readonly orphans: WrittenObjects<Orphan>;
}

export interface InformerDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every failure to follow a kind, by its plural. */
  readonly onError: (error: unknown, kind: string) => void;
}

/** How VMs are found by what they refer to. */
const vmIndexes = {
  hypervisor: ({ spec, status }: VirtualMachine): string[] => {
    return [...new Set([spec.hypervisorRef.name, status?.hypervisor ?? spec.hypervisorRef.name])];
  },
  class: ({ metadata, spec }: VirtualMachine): string[] => {
    return spec.classRef ? [`${metadata.namespace ?? ""}/${spec.classRef.name}`] : [];
  },
  image: imagesWanted,
  network: ({ spec }: VirtualMachine): string[] => {
    return (spec.networks ?? []).flatMap(({ networkRef }) => (networkRef ? [networkRef.name] : []));
  },
  source: ({ metadata, spec }: VirtualMachine): string[] => {
    const name = spec.source?.clone?.vmRef?.name;
    return name === undefined ? [] : [`${metadata.namespace ?? ""}/${name}`];
  },
};

const orphanIndexes = {
  hypervisor: ({ spec }: Orphan): string[] => [spec.hypervisor],
};

/** Starts copies of all that the controllers read. */
export function startInformers(deps: InformerDeps): Informers {
  const follow = <Read extends KubeObject, Written>(
    kind: Kind<Read, Written>,
    indexes: Indexes<Read> = {},
  ): Informer<Read> => {
    const onError = (error: unknown): void => deps.onError(error, kind.plural);
    return createInformer({ ...deps, kind, indexes, onError });
  };
  return {
    vms: follow(virtualMachineKind, vmIndexes),
    hypervisors: follow(hypervisorKind),
    claims: follow(claimKind, claimIndexes),
    classes: follow(vmClassKind),
    images: follow(vmImageKind),
    networks: follow(vmNetworkKind),
    orphans: follow(orphanKind, orphanIndexes),
  };
}

export function writtenObjects({ vms, hypervisors, images, orphans }: Informers): WrittenKinds {
  return {
    vms: new WrittenObjects(vms),
    hypervisors: new WrittenObjects(hypervisors),
    images: new WrittenObjects(images),
    orphans: new WrittenObjects(orphans),
  };
}

export async function stopInformers(informers: Informers): Promise<void> {
  const { vms, hypervisors, claims, classes, images, networks, orphans } = informers;
  const all = [vms, hypervisors, claims, classes, images, networks, orphans];
  await Promise.all(all.map((informer) => informer.stop()));
}
