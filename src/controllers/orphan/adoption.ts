import { apiVersion } from "../../api/index.ts";
import type { Orphan, WrittenVirtualMachine, WrittenVirtualMachineSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";

/**
 * The VirtualMachine for a machine that is adopted, as it stands: what its mark names is declared
 * under the same names, so that nothing of it is detached, and everything else is left out. Pure.
 */
export function declarationOf({ spec }: Orphan, machine: Machine): WrittenVirtualMachine {
  const { namespace, name } = spec.adoptAs ?? { namespace: "default", name: spec.externalId };
  return {
    apiVersion,
    kind: "VirtualMachine",
    metadata: { namespace, name },
    spec: defined<WrittenVirtualMachineSpec>({
      hypervisorRef: { name: spec.hypervisor },
      adopt: "Only",
      externalId: spec.externalId,
      machineName: machine.shape.name,
      cpu: cpuOf(machine),
      memory: memoryOf(machine),
      disks: disksOf(machine),
      networks: networksOf(machine),
      powerState: powerOf(machine),
    }),
  };
}

function powerOf({ power }: Machine): "Running" | "Stopped" | "Suspended" {
  if (power === "Suspended") return power;
  return power === "Stopped" ? "Stopped" : "Running";
}

function cpuOf({ shape }: Machine): WrittenVirtualMachineSpec["cpu"] {
  const { cores, sockets } = shape.cpu ?? {};
  return cores === undefined ? undefined : { cores, ...(sockets === undefined ? {} : { sockets }) };
}

function memoryOf({ shape }: Machine): WrittenVirtualMachineSpec["memory"] {
  const { sizeBytes } = shape.memory ?? {};
  return sizeBytes === undefined ? undefined : { size: quantityOf(sizeBytes) };
}

/** The one that it boots from stands first. */
function disksOf({ disks, shape }: Machine): WrittenVirtualMachineSpec["disks"] {
  const first = shape.bootOrder?.[0];
  const named = disks.flatMap(({ name, storage, sizeBytes, bus }) => {
    if (name === undefined) return [];
    const size = sizeBytes > 0 ? { size: quantityOf(sizeBytes) } : {};
    return [{ name, storage, bus, ...size }];
  });
  return named.toSorted((a, b) => Number(b.name === first) - Number(a.name === first));
}

function networksOf({ shape }: Machine): WrittenVirtualMachineSpec["networks"] {
  return (shape.networks ?? []).flatMap(({ name, network, vlan, macAddress }) => {
    return network === undefined ? [] : [defined({ name, bridge: network, vlan, macAddress })];
  });
}

/** Sizes on hypervisors are whole kibibytes. */
function quantityOf(bytes: number): string {
  return `${Math.ceil(bytes / 1024)}Ki`;
}
